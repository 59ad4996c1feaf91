"""nmt.text.vocabulary: ids of tokens, and the file format."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.text.vocabulary import EOS, PAD, SOS, SPECIALS, UNK, Vocabulary

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r"), min_size=1)
START = "<pad>\t0\n<unk>\t0\n<sos>\t0\n<eos>\t0\n"


def test_special_tokens_come_first_then_the_most_frequent_and_ties_are_alphabetical() -> None:
    vocabulary = Vocabulary.build({"b": 2, "a": 2, "rare": 1, "often": 9})
    assert list(vocabulary) == [*SPECIALS, "often", "a", "b", "rare"]
    assert (PAD, UNK, SOS, EOS) == (0, 1, 2, 3)
    assert vocabulary == Vocabulary.build({"often": 9, "rare": 1, "a": 2, "b": 2})


def test_minimum_frequency_and_maximum_size_limit_it() -> None:
    counts = {"a": 5, "b": 4, "c": 3, "d": 1}
    assert list(Vocabulary.build(counts, min_frequency=2))[4:] == ["a", "b", "c"]
    assert Vocabulary.build(counts, min_frequency=4).counts == (0, 4, 0, 0, 5, 4)
    assert list(Vocabulary.build(counts, max_size=6))[4:] == ["a", "b"]
    assert len(Vocabulary.build(counts, min_frequency=2, max_size=100)) == 7


def test_it_is_extended_at_its_end() -> None:
    vocabulary = Vocabulary.build({"a": 3, "rare": 1}, min_frequency=2)
    counts = {"a": 9, "c": 5, "b": 5, "<eos>": 9, "often": 7, "rare": 4}
    longer = vocabulary.extended(counts, min_frequency=5)
    assert [*longer] == [*SPECIALS, "a", "often", "b", "c"]
    assert longer.counts == (0, 1, 0, 0, 3, 7, 5, 5)
    assert vocabulary.begins(longer)
    assert not longer.begins(vocabulary)


def test_unknown_tokens_become_unk_and_ids_become_tokens_again() -> None:
    vocabulary = Vocabulary.build({"a": 2, "b": 1})
    assert vocabulary.ids(["a", "x", "b"]) == [4, UNK, 5]
    assert vocabulary.tokens([SOS, 4, UNK, 5, EOS]) == ["<sos>", "a", "<unk>", "b", "<eos>"]
    assert "a" in vocabulary
    assert "x" not in vocabulary
    with pytest.raises(IndexError):
        vocabulary.tokens([6])


@pytest.mark.parametrize("special", SPECIALS)
def test_text_spelled_like_a_special_token_is_unknown(special: str) -> None:
    vocabulary = Vocabulary.build({special: 100, "a": 1})
    assert vocabulary.ids([special]) == [UNK]
    assert special not in vocabulary
    assert len(vocabulary) == 5


@pytest.mark.parametrize("token", ["", "a\tb", "a\nb", "a\rb"])
def test_tokens_that_the_file_cannot_hold_are_refused(token: str) -> None:
    with pytest.raises(ValueError, match="tab or a line break"):
        Vocabulary.build({token: 1})


@given(counts=st.dictionaries(WORDS, st.integers(1, 1000)), min_frequency=st.integers(1, 5))
def test_it_is_saved_and_loaded_unchanged(
    counts: dict[str, int], min_frequency: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "src.vocab.txt"
    vocabulary = Vocabulary.build(counts, min_frequency)
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary


def test_the_file_is_readable_text_with_the_count_of_unknown_tokens(tmp_path: Path) -> None:
    path = tmp_path / "src.vocab.txt"
    Vocabulary.build({"schön": 3, "a": 1, "b": 1}, min_frequency=2).save(path)
    text = "<pad>\t0\n<unk>\t2\n<sos>\t0\n<eos>\t0\nschön\t3\n"
    assert path.read_bytes() == text.encode()
    path.write_bytes(text.replace("\n", "\r\n").encode())
    assert Vocabulary.load(path).ids(["schön"]) == [4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (START + "a\t3\nb", r"line 6: the file is cut off here"),
        (START + "a 3\n", r"line 5: expected a token, a tab and its count, found 'a 3'"),
        (START + "a\tmany\n", r"line 5: expected a token, a tab and its count"),
        (START + "a\t3\tb\n", r"line 5: expected a token"),
        (START + "\t3\n", r"line 5: expected a token"),
        (START + "a\rb\t3\n", r"line 5: expected a token"),
        (START + "a\t3\nb\t2\na\t1\n", r"line 7: 'a' occurs twice"),
        ("a\t3\n", r"does not begin with the tokens <pad>, <unk>, <sos>, <eos>"),
        ("", r"does not begin with the tokens <pad>, <unk>, <sos>, <eos>"),
        (f"<pad>\t{'9' * 5000}\n", r"line 1: expected a token, a tab and its count"),
    ],
)
def test_a_damaged_file_is_refused_and_the_line_is_named(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "src.vocab.txt"
    path.write_bytes(content.encode())
    with pytest.raises(DataError, match=message):
        Vocabulary.load(path)
