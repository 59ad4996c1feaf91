"""From text to text: order, empty sentences, prefixes, n-best lists, batches within memory,
threads.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import DecodingConfig, ModelConfig, TokenizerConfig
from nmt.decoding import translator as module
from nmt.decoding.alignment import align
from nmt.decoding.forced import score_pairs
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.search import search
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator, WordlessLines
from nmt.errors import ConfigError, DataError
from nmt.model.seq2seq import Seq2Seq
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary
from tests.model.test_graphs import onnx_model

TEXTS = ["ab", "", "a b a b", "  ", "b", "abababab"]
ENGLISH = {"the": 9, "dog": 5, "sleeps": 3, "￭.": 4, "2": 1}
JAPANESE = {"犬": 9, "は": 9, "眠る": 3, "。": 4, "２": 2}
NUMBERS = {"7": 5, "+": 5, "=": 5, "x": 1}


def make_seq2seq(n_words: int) -> Seq2Seq:
    torch.manual_seed(1)
    config = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 16}}
    model = Seq2Seq(ModelConfig.model_validate(config), n_words, n_words).eval()
    for parameter in model.parameters():
        parameter.data.mul_(2)
    return model


def make_translator(kind: str = "characters", **options: Any) -> Translator:
    tokenizer = load_tokenizer(TokenizerConfig.model_validate({"kind": kind}), "en", "src", Path())
    vocabulary = Vocabulary.build(
        {"a": 3, "b": 2, "▁": 1} if kind == "characters" else {"a": 3, "b": 2, "￭!": 1}
    )
    options = {"beam": 3, "batch": 4, **options}
    tokenizers, vocabularies = (tokenizer, tokenizer), (vocabulary, vocabulary)
    return Translator(
        onnx_model(make_seq2seq(len(vocabulary)), threads=2),
        tokenizers=tokenizers,
        vocabularies=vocabularies,
        options=DecodingConfig.model_validate(options),
    )


def outputs(translations: list[Translation]) -> list[tuple[str, tuple[str, ...]]]:
    return [(translation.text, translation.tokens) for translation in translations]


def test_order_and_empty_texts() -> None:
    translator = make_translator()
    together = translator.translate(TEXTS)
    assert [translation.source for translation in together] == TEXTS
    assert [together[i].text for i in (1, 3)] == ["", ""]
    for text, translation in zip(TEXTS, together, strict=True):
        (alone,) = translator.translate([text])
        assert (alone.text, alone.tokens) == (translation.text, translation.tokens)
        if translation.src_tokens:
            rows, columns = (
                len(translation.tokens) + translation.complete,
                len(translation.src_tokens) + 1,
            )
            assert translation.attention.shape == (rows, columns)


def test_equal_texts_are_translated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    n_searched = []

    def counting_search(model: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        n_searched.append(len(sources))
        return search(model, sources, *args, **kwargs)

    translator = make_translator()
    monkeypatch.setattr(module, "search", counting_search)
    texts, prefixes = ["ab", "b", "ab", "", "b", "ab"], ["", "", "a", "", "", ""]
    lists = translator.translate_n_best(texts, 2, prefixes)
    assert sum(n_searched) == 3
    assert [best[0].source for best in lists] == texts
    assert lists[0] == lists[5] != lists[2]
    assert lists[2][0].tokens[0] == "a"


def test_lines_without_words_are_copied() -> None:
    translator = make_translator()
    texts = ["12 - 34", "...", " 5 ", "?!\t1", "ab 1"]
    *copied, translated = translator.translate_n_best(texts, 2)
    assert [[one.text for one in best] for best in copied] == [
        ["12 - 34"],
        ["..."],
        [" 5 "],
        ["?! 1"],
    ]
    assert len(translated) == 2
    [[best], *_] = copied
    assert align(best, translator.tokenizers) == [(0, 0), (1, 1), (2, 2)]
    assert len(best.token_log_probs) == len(best.attention_labels[1]) == len(best.attention)
    (continued,) = translator.translate(["..."], ["a"])
    assert continued.tokens[0] == "a"


def test_n_best_lists_have_no_duplicates_while_the_beam_has_others() -> None:
    """The characters " a" and "a" are joined to the same text."""
    translator = make_translator(beam=6, replace_unknown=False)
    texts = [text for text in TEXTS if text.strip()]
    src = [
        translator.src_vocabulary.ids(tokens)
        for tokens in translator.src_tokenizer.split_all(texts)
    ]
    expected, n_alike = [], 0
    for hypotheses in search(translator.model, src, translator.options, n_best=6):
        joined = [
            translator.tgt_tokenizer.join(translator.tgt_vocabulary.tokens(one.ids))
            for one in hypotheses
        ]
        expected.append([*dict.fromkeys(joined)])
        n_alike += len(expected[-1][:3]) > len({*joined[:3]})
        first = {
            text: one.score
            for text, one in zip(reversed(joined), reversed(hypotheses), strict=True)
        }
        (found,) = translator.translate_n_best([texts[len(expected) - 1]], 6)
        assert [one.score for one in found] == pytest.approx([first[text] for text in expected[-1]])
    assert n_alike
    for n in (1, 2, 3, 6):
        n_found = translator.translate_n_best(texts, n)
        assert [[one.text for one in best] for best in n_found] == [
            distinct[:n] for distinct in expected
        ]


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (4, "4 translations per sentence: the beam is 3; set decoding.beam to 4 or more"),
        (0, "0 translations per sentence: ask for at least one"),
    ],
)
def test_n_best_is_limited_by_the_beam(n: int, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make_translator().translate_n_best(["ab"], n)


def test_samples_depend_on_the_seed_and_the_sentence_alone() -> None:
    translator = make_translator(method="sampling")
    texts = [f"{'ab' * i}a" for i in range(9)]
    once = translator.translate(texts)
    assert outputs(once) == outputs(translator.translate(texts))
    assert outputs(once)[::-1] == outputs(translator.translate(texts[::-1]))
    assert outputs(once) == [outputs(translator.translate([text]))[0] for text in texts]
    assert outputs(once) == outputs(make_translator(method="sampling", batch=64).translate(texts))
    assert outputs(once) != outputs(make_translator(method="sampling", seed=2).translate(texts))
    five = translator.translate_n_best(texts, 5)  # more than the beam, which sampling ignores
    assert all(
        outputs([one])[0] in outputs(samples) for one, samples in zip(once, five, strict=True)
    )
    assert max(len(set(outputs(samples))) for samples in five) == 5


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_translations_start_with_their_prefix(kind: str) -> None:
    translator = make_translator(kind, min_length_ratio=1.0)
    prefixes = ["b a", "b", "", "a", "a b!" if kind == "words" else "ab", " b"]
    forced, free = translator.translate(TEXTS, prefixes), translator.translate(TEXTS)
    for prefix, with_prefix, without in zip(prefixes, forced, free, strict=True):
        assert not with_prefix.source.strip() or with_prefix.text.startswith(prefix.strip())
        if not prefix:
            assert outputs([with_prefix]) == outputs([without])
    assert any(a.text != b.text for a, b in zip(forced, free, strict=True))


def test_each_text_needs_its_prefix() -> None:
    with pytest.raises(
        DataError, match="2 prefixes for 1 texts: give one prefix per text; it may be empty"
    ):
        make_translator().translate(["a"], ["a", "b"])


def test_a_long_source_is_truncated_and_marked() -> None:
    translator = make_translator(max_source_tokens=5)
    whole, cut, short = translator.translate(["ababa", "ababab", "a"])
    assert (whole.src_cut, cut.src_cut, short.src_cut) == (False, True, False)
    assert (cut.src_tokens, outputs([cut])) == (whole.src_tokens, outputs([whole]))
    assert cut.source == "ababab"


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_several_threads_may_use_it(kind: str) -> None:
    translator = make_translator(kind)
    texts = [
        [f"{'ab ' * (1 + (i + j) % 7)}{chr(97 + (i * j) % 26)} b!" for j in range(6)]
        for i in range(4)
    ]
    expected = [outputs(translator.translate(some)) for some in texts]
    with ThreadPoolExecutor(4) as pool:
        assert [outputs(found) for found in pool.map(translator.translate, texts)] == expected


@pytest.mark.parametrize("method", ["beam", "sampling"])
def test_the_number_of_threads_does_not_change_translations(method: str) -> None:
    translator = make_translator(batch=3, method=method)
    texts = [f"{'ab ' * (1 + i % 7)}{chr(97 + i % 26)} b!" for i in range(12)] + [""]
    pairs = [(text, text[::-1]) for text in texts]
    results = []
    for threads in (1, 2):
        translator.model.threads = threads
        scored = [pair.token_log_probs for pair in score_pairs(translator, pairs)]
        results.append((outputs(translator.translate(texts)), scored))
    assert results[0][0] == results[1][0]
    for alone, beside in zip(results[0][1], results[1][1], strict=True):
        assert beside == pytest.approx(alone, abs=1e-5)


def test_batches_stay_within_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[tuple[int, int]] = []

    def record(
        _: object, sources: list[list[int]], *__: object, **___: object
    ) -> list[list[Hypothesis]]:
        batches.append((len(sources), max(map(len, sources))))
        return [
            [Hypothesis([], 0.0, [0.0], 0.0, np.zeros((1, 1), np.float32), complete=True)]
            for _ in sources
        ]

    monkeypatch.setattr(module, "search", record)
    translator, beam = make_translator(batch=6), 3
    monkeypatch.setattr(module, "MAX_SEARCH_TOKENS", 5 * beam * module.MIN_LENGTH)
    texts = [f"a{letter}" for letter in "abcdefghijk"] + [
        "",
        "a" * 40,
        "b" * 40,
        "a" * 99,
        "b" * 20,
    ]
    assert [translation.source for translation in translator.translate(texts)] == texts
    assert sorted(batches) == [(1, 99), (2, 20), (2, 40), (5, 2), (5, 2)]
    translator.options = translator.options.model_copy(update={"batch": 2})
    batches.clear()
    translator.translate(texts[:5])
    assert sorted(batches) == [(1, 2), (2, 2), (2, 2)]


@pytest.mark.parametrize(
    ("source", "target", "text", "copied"),
    [
        (ENGLISH, JAPANESE, "12,345", True),
        (ENGLISH, JAPANESE, "¿ – …", True),
        (ENGLISH, JAPANESE, "😀🇯🇵 ♥", True),
        (ENGLISH, JAPANESE, "5 km", False),
        (JAPANESE, ENGLISH, "...", True),
        (JAPANESE, ENGLISH, "。", False),
        (JAPANESE, ENGLISH, "２", False),
        (JAPANESE, JAPANESE, "２。", True),
        (NUMBERS, ENGLISH, "7 + 7", False),
    ],
)
def test_lines_without_words(
    source: dict[str, int], target: dict[str, int], text: str, copied: bool
) -> None:
    lines = WordlessLines(Vocabulary.build(source), Vocabulary.build(target))
    assert (text in lines) is copied
