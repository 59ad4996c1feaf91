"""Keys of whole words: they depend on the characters alone, not on the subwords."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.model.word_keys import BASE, MAX_CHARACTERS, WordKeys
from nmt.text.vocabulary import SPECIALS

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


def key(word: str) -> int:
    """As a signed number of 64 bits."""
    value = sum(ord(character) * pow(BASE, i, 1 << 64) for i, character in enumerate(word)) % (
        1 << 64
    )
    return value - (1 << 64) if value >> 63 else value


def word_keys(*, lowercase: bool = False) -> WordKeys:
    module = WordKeys(len(TOKENS))
    module.fill(TOKENS, lowercase=lowercase)
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


def test_case_can_be_ignored() -> None:
    ids = torch.tensor([[TOKENS.index("▁Ä"), TOKENS.index("b")]])
    assert word_keys()(ids)[1].tolist() == [[key("Äb")] * 2]
    assert word_keys(lowercase=True)(ids)[1].tolist() == [[key("äb")] * 2]


def test_special_tokens_and_endless_words() -> None:
    module, letter = word_keys(), TOKENS.index("b")
    assert module(torch.tensor([range(len(SPECIALS))]))[1].tolist() == [[0] * len(SPECIALS)]
    numbers, keys = module(torch.full((1, 2 * MAX_CHARACTERS), letter))
    assert (numbers.max(), len(keys.unique())) == (0, 1)
