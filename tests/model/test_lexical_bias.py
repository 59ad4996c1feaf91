"""The lexicon in the output layer: against the equation in NumPy, in training and in search."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import DecodingConfig, ModelConfig, TrainingConfig
from nmt.data.batches import build_batch
from nmt.decoding.forced import score_batch
from nmt.decoding.search import search
from nmt.decoding.torch_model import TorchModel
from nmt.model.lexical_bias import LexicalBias, Translations, WordKeys
from nmt.model.lexicon import BASE, MAX_CHARACTERS
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, SPECIALS
from nmt.training.loss import Loss

SRC_V, TGT_V, SIZE = 12, 15, 3
SRC, TGT = [[4, 5, 4, 6], [7, 11], [8, 9, 10]], [[5, 6], [7, 8, 9, 10], [11]]
LETTERS = "abcdéÄß7"
SIGNS = ".,!"
TOKENS = [
    *SPECIALS,
    "▁",
    *LETTERS,
    *(f"▁{letter}" for letter in LETTERS),
    *SIGNS,
    *(f"▁{sign}" for sign in SIGNS),
    "ab",
    "▁cd",
    "'a",
]
WORD = st.text(LETTERS, min_size=1, max_size=7)


def random_table(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to k different translations of each word, most probable first; the empty places hold 0."""
    random = np.random.default_rng(seed)
    ids, probabilities = np.zeros((SRC_V, SIZE), np.int64), np.zeros((SRC_V, SIZE))
    for word in range(4, SRC_V):
        n = int(random.integers(0, SIZE + 1))
        ids[word, :n] = random.choice(np.arange(1, TGT_V), n, replace=False)
        probabilities[word, :n] = np.sort(random.dirichlet(np.ones(n + 1))[:n])[::-1]
    return torch.from_numpy(ids), torch.from_numpy(probabilities)


def expected_bias(module: LexicalBias, src: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
    """log(sum_j alpha_j p(. | x_j) + epsilon) - log(epsilon), [B, T, V], word by word."""
    lexicon = torch.zeros(*attention.shape[:2], TGT_V, dtype=torch.double)
    for b, sentence in enumerate(module.rows(src).tolist()):
        for j, row in enumerate(sentence):
            for target, probability in zip(
                module.ids[row].tolist(), module.probabilities[row].tolist(), strict=True
            ):
                lexicon[b, :, target] += attention[b, :, j] * probability
    return torch.log(lexicon / 0.001 + 1)


def dense(bias: torch.Tensor, translations: Translations) -> torch.Tensor:
    """The bias of each target word, from that of the translations: [B, T, U] -> [B, T, V]."""
    ids = translations.ids.unsqueeze(1).expand_as(bias)
    return bias.new_zeros(*bias.shape[:2], TGT_V).scatter_add(2, ids, bias)


def make(seed: int = 0, **sections: Any) -> Seq2Seq:
    torch.manual_seed(seed + 3)
    sizes = {
        "embedding_size": 8,
        "encoder": {"hidden_size": 6},
        "decoder": {"hidden_size": 12},
        "dropout": 0.0,
        "lexical_bias": SIZE,
    }
    model = Seq2Seq(ModelConfig.model_validate({**sizes, **sections}), SRC_V, TGT_V).double()
    assert model.lexical_bias is not None
    model.lexical_bias.fill(*random_table(seed))
    return model


def log_probs(model: Seq2Seq) -> torch.Tensor:
    """Of a batch with teacher forcing [B, T, V], from the equation."""
    batch = build_batch(SRC, TGT)
    decoded = model(batch.src, batch.src_lengths, batch.tgt_in)
    assert model.lexical_bias is not None
    bias = expected_bias(model.lexical_bias, batch.src, decoded.attention)
    logits: torch.Tensor = model.output(decoded.vectors) + bias
    return logits.log_softmax(-1)


WORD_TOKENS = [*SPECIALS, "▁key", "board", "▁Key", "s", "!", "▁", "boards", "'s"]


def fill_with_words(module: LexicalBias) -> None:
    """Subwords 4 to 11, and a lexicon of three words: keyboard, keyboards, s."""
    module.fill(*random_table())
    words = WordKeys(SRC_V)
    words.fill(WORD_TOKENS, lowercase=True)
    keys = torch.stack([words(torch.tensor([ids]))[1][0, 0] for ids in ([4, 5], [4, 10], [7])])
    ids, probabilities = (
        torch.tensor([[4, 5, 0], [6, 0, 0], [7, 8, 9]]),
        torch.tensor([[0.9, 0.8, 0], [1.0, 0, 0], [0.5, 0.4, 0.1]]),
    )
    module.fill_words(WORD_TOKENS, keys, ids, probabilities)


def with_words() -> LexicalBias:
    module = LexicalBias(SRC_V, TGT_V, SIZE, n_words=4).double()
    fill_with_words(module)
    return module


@pytest.mark.parametrize(
    ("src", "expected"),
    [
        ([4, 5, EOS], [[4, 5], [4, 5], EOS]),
        ([6, 5, 8, EOS], [[4, 5], [4, 5], 8, EOS]),  # keys ignore case
        ([4, 5, 7, 4, 10], [[6], [6], [6], [6], [6]]),  # the same word, divided in two ways
        # "keys" is no word of the lexicon, but "s" after a sign is
        ([4, 4, 7, 8, 7], [4, 4, 7, 8, [7, 8, 9]]),
        ([9, 7, 5, 5, 0], [9, 7, 5, 5, 0]),
    ],
)
def test_whole_words_count_in_place_of_their_tokens(
    src: list[int], expected: list[int | list[int]]
) -> None:
    module = with_words()
    for row, wanted in zip(module.rows(torch.tensor([src]))[0].tolist(), expected, strict=True):
        assert (
            row if isinstance(wanted, int) else [word for word in module.ids[row].tolist() if word]
        ) == wanted


@given(
    st.lists(st.lists(st.integers(0, SRC_V - 1), min_size=6, max_size=6), min_size=1, max_size=4),
    st.none() | st.integers(0, 50),
)
def test_the_bias_is_that_of_the_equation(sentences: list[list[int]], seed: int | None) -> None:
    """With whole words and, if there is a seed, without."""
    module, src = with_words(), torch.tensor(sentences)
    if seed is not None:
        module = LexicalBias(SRC_V, TGT_V, SIZE).double()
        module.fill(*random_table(seed))
    attention = torch.rand(len(src), 5, 6, dtype=torch.double)
    translations = module.look_up(src)
    bias = expected_bias(module, src, attention)
    values = module(attention, translations)
    torch.testing.assert_close(dense(values, translations), bias)
    for b, ids in enumerate(translations.ids.tolist()):
        words = [word for word in ids if word]
        assert len(words) == len(set(words))
        torch.testing.assert_close(values[b], bias[b][:, ids])


def test_words_that_do_not_fit_are_left_out() -> None:
    module = LexicalBias(SRC_V, TGT_V, SIZE, n_words=1)
    full = with_words()
    keys = full.word_keys[:3].flip(0)
    module.fill_words(
        [*SPECIALS, *"abcdefgh"], keys, torch.tensor([[4, 0, 0]] * 3), torch.ones(3, SIZE)
    )
    assert module.word_keys.tolist() == keys[:1].tolist()


def test_a_module_that_is_not_filled_changes_nothing() -> None:
    module = LexicalBias(SRC_V, TGT_V, SIZE)
    assert not module(torch.rand(1, 2, 4), module.look_up(torch.tensor([[4, 5, 6, EOS]]))).any()
    module.fill(*random_table())
    translations = module.look_up(torch.tensor([[EOS]]))
    assert dense(module(torch.ones(1, 1, 1), translations), translations).argmax() == EOS


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_training_minimizes_the_negative_log_likelihood(smoothing: float) -> None:
    model, batch = make(), build_batch(SRC, TGT)
    expected = torch.nn.functional.cross_entropy(
        log_probs(model)[batch.tgt_mask],
        batch.tgt_out[batch.tgt_mask],
        reduction="sum",
        label_smoothing=smoothing,
    )
    parameters = [*model.parameters()]
    gradients = torch.autograd.grad(expected, parameters)
    loss, _ = Loss(model, TrainingConfig(label_smoothing=smoothing))(batch)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, parameters), gradients)


@pytest.mark.parametrize(
    "sections",
    [{}, {"decoder": {"hidden_size": 12, "input_feeding": True}}],
)
def test_search_and_forced_decoding_have_the_probabilities_of_training(
    sections: dict[str, Any],
) -> None:
    seq2seq = make(**sections).eval()
    with torch.inference_mode():
        expected = log_probs(seq2seq)
    model = TorchModel(seq2seq)
    for scored, row, target in zip(score_batch(model, SRC, TGT), expected, TGT, strict=True):
        np.testing.assert_allclose(
            scored, row[range(len(target) + 1), [*target, EOS]].numpy(), atol=1e-9
        )
    best = search(model, SRC, DecodingConfig(beam=3), n_best=2)
    for scored, sentence in zip(
        score_batch(model, SRC, [h[0].ids for h in best]), best, strict=True
    ):
        np.testing.assert_allclose(
            scored[: len(sentence[0].token_log_probs)], sentence[0].token_log_probs, atol=1e-9
        )


def test_scheduled_sampling_reads_the_word_that_is_most_probable_with_the_bias() -> None:
    model, batch = make(), build_batch(SRC, TGT)
    forcing_mask = torch.zeros_like(batch.tgt_in, dtype=torch.bool)
    sampled = model(batch.src, batch.src_lengths, batch.tgt_in, forcing_mask)
    own = batch.tgt_in.clone()
    for position in range(1, own.shape[1]):
        decoded = model(batch.src, batch.src_lengths, own)
        assert model.lexical_bias is not None
        bias = expected_bias(model.lexical_bias, batch.src, decoded.attention)
        own[:, position] = (model.output(decoded.vectors) + bias).argmax(-1)[:, position - 1]
    decoded = model(batch.src, batch.src_lengths, own)
    torch.testing.assert_close(sampled.vectors, decoded.vectors)
    torch.testing.assert_close(sampled.lexical_bias, decoded.lexical_bias)
    mixed = forcing_mask.clone()
    mixed[1] = True
    rows = model(batch.src, batch.src_lengths, batch.tgt_in, mixed)
    torch.testing.assert_close(rows.lexical_bias[[0, 2]], decoded.lexical_bias[[0, 2]])


def key(word: str) -> int:
    value = sum(ord(character) * pow(BASE, i, 1 << 64) for i, character in enumerate(word)) % (
        1 << 64
    )
    return value - (1 << 64) if value >> 63 else value


def word_keys() -> WordKeys:
    module = WordKeys(len(TOKENS))
    module.fill(TOKENS, lowercase=False)
    return module


@st.composite
def subwords(draw: st.DrawFn, word: str) -> list[str]:
    """A way to divide a word into tokens."""
    pieces, rest = [], f"▁{word}"
    while rest:
        choices = [token for token in TOKENS[len(SPECIALS) :] if rest.startswith(token)]
        pieces.append(draw(st.sampled_from(choices)))
        rest = rest.removeprefix(pieces[-1])
    return pieces


@given(st.data(), st.lists(st.lists(WORD, min_size=1, max_size=5), min_size=1, max_size=3))
def test_the_key_is_that_of_the_characters(data: st.DataObject, sentences: list[list[str]]) -> None:
    divided = [[data.draw(subwords(word)) for word in sentence] for sentence in sentences]
    length = max(sum(map(len, sentence)) for sentence in divided)
    ids = torch.zeros(len(sentences), length, dtype=torch.long)
    expected: list[list[int]] = []
    for row, sentence in enumerate(divided):
        tokens = [token for pieces in sentence for token in pieces]
        ids[row, : len(tokens)] = torch.tensor([TOKENS.index(token) for token in tokens])
        expected.append([])
        for word, pieces in zip(sentences[row], sentence, strict=True):
            # A mark alone has no letters, so it is a word without a key.
            expected[-1] += (
                [0, *[key(word)] * (len(pieces) - 1)]
                if pieces[0] == "▁"
                else [key(word)] * len(pieces)
            )
        expected[-1] += [0] * (length - len(tokens))
    numbers, keys = word_keys()(ids)
    assert keys.tolist() == expected
    assert numbers[:, 0].tolist() == [0] * len(sentences)
    changes = numbers.diff(dim=1)
    assert changes.ge(0).all()
    assert changes.le(1).all()


def test_signs_are_words_and_end_words() -> None:
    numbers, keys = word_keys()(
        torch.tensor(
            [[TOKENS.index(token) for token in ("▁a", "b", "!", "a", "b", ".", "▁cd", "'a", "ab")]]
        )
    )
    assert numbers.tolist() == [[0, 0, 1, 2, 2, 3, 4, 4, 4]]
    assert keys.tolist() == [
        [key("ab")] * 2 + [key("!")] + [key("ab")] * 2 + [key(".")] + [key("cd'aab")] * 3
    ]


def test_special_tokens_and_endless_words() -> None:
    module, letter = word_keys(), TOKENS.index("b")
    assert module(torch.tensor([range(len(SPECIALS))]))[1].tolist() == [[0] * len(SPECIALS)]
    numbers, keys = module(torch.full((1, 2 * MAX_CHARACTERS), letter))
    assert (numbers.max(), len(keys.unique())) == (0, 1)
