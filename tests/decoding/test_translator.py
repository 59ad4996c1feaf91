"""From text to text: order, empty sentences, batches that stay within memory."""

from pathlib import Path

import torch

from nmt.config import ModelConfig, TokenizerConfig
from nmt.decoding import translator as module
from nmt.decoding.search import SearchOptions
from nmt.decoding.translator import Translator
from nmt.model.seq2seq import Seq2Seq
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary


def make_translator(batch_size: int = 4) -> Translator:
    torch.manual_seed(1)
    tokenizer = load_tokenizer(TokenizerConfig(kind="characters"), "en", "src", Path())
    vocabulary = Vocabulary.build({"a": 3, "b": 2, "▁": 1})
    config = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 16}}
    model = Seq2Seq(ModelConfig.model_validate(config), len(vocabulary), len(vocabulary))
    options = SearchOptions(beam=2)
    tokenizers, vocabularies = (tokenizer, tokenizer), (vocabulary, vocabulary)
    return Translator(model, tokenizers=tokenizers, vocabularies=vocabularies, options=options, batch_size=batch_size)


def test_order_and_empty_texts() -> None:
    translator = make_translator()
    texts = ["ab", "", "a b a b", "  ", "b", "abababab"]
    together = translator.translate(texts)
    assert [translation.source for translation in together] == texts
    assert [together[i].text for i in (1, 3)] == ["", ""]
    for text, translation in zip(texts, together, strict=True):
        (alone,) = translator.translate([text])
        assert (alone.text, alone.tokens) == (translation.text, translation.tokens)
        if translation.attention is not None:
            rows, columns = len(translation.tokens) + translation.complete, len(translation.src_tokens) + 1
            assert translation.attention.shape == (rows, columns)


def test_a_long_sentence_is_not_padded_over_a_whole_batch() -> None:
    translator = make_translator(batch_size=100)
    plans = list(translator._plan([3] * 50 + [module.MOST_TOKENS // 2 - 1] * 3 + [3 * module.MOST_TOKENS, 0]))
    lengths = [3] * 50 + [module.MOST_TOKENS // 2 - 1] * 3 + [3 * module.MOST_TOKENS]
    assert sorted(i for plan in plans for i in plan) == list(range(54))
    assert all(len(plan) == 1 or len(plan) * max(lengths[i] for i in plan) <= module.MOST_TOKENS for plan in plans)
