"""Pretrained word vectors: reading files, and errors of unusable files."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.extras.vectors.vectors import WordVectors, load_vectors
from nmt.text.tokenizers import JOINER
from nmt.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary.build(
    {"the": 60, "dog": 20, "Haus": 10, "schön": 8, "rare": 1}, min_frequency=2
)
THE, DOG, HAUS, SCHOEN = range(4, 8)


def write(path: Path, *lines: str, encoding: str = "utf-8") -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return path


def read(
    path: Path, *lines: str, vocabulary: Vocabulary = VOCABULARY, dimension: int = 2
) -> WordVectors:
    return load_vectors(write(path / "v.txt", *lines), vocabulary, dimension)


def rows(vectors: WordVectors) -> dict[int, list[float]]:
    return {
        int(index): row.tolist() for index, row in zip(vectors.ids, vectors.matrix, strict=True)
    }


def test_reads_the_vectors_of_the_vocabulary_only(tmp_path: Path) -> None:
    vectors = read(tmp_path, "schön 1 2.5", "cat 3 4", "<unk> 5 6", "<pad> 5 6", "the -7e-1 8")
    assert rows(vectors) == {THE: [np.float32(-0.7), 8], SCHOEN: [1, 2.5]}
    assert vectors.matrix.dtype == np.float32


@pytest.mark.parametrize(
    "lines",
    [
        ["the 1 2", "dog 3 4"],
        ["2 2", "the 1 2", "dog 3 4"],
        ["2 2 ", "the 1 2 ", "dog\t3\t4\r", "", " "],
    ],
)
def test_header_and_kind_of_space_are_optional(tmp_path: Path, lines: list[str]) -> None:
    assert rows(read(tmp_path, *lines)) == {THE: [1, 2], DOG: [3, 4]}


def test_gzip_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "v.vec.gz"
    path.write_bytes(gzip.compress("\ufeffthe 1 2\nschön 3 4\n".encode()))
    assert rows(load_vectors(path, VOCABULARY, 2)) == {THE: [1, 2], SCHOEN: [3, 4]}


def test_coverage_counts_tokens_and_running_words(tmp_path: Path) -> None:
    vectors = read(tmp_path, "the 1 2", "dog 3 4")
    assert vectors.coverage == "2 of 4 tokens (50.0 %), 80.8 % of the running words, from v.txt"


@pytest.mark.parametrize("lines", [["haus 1 1", "Haus 2 2.5"], ["Haus 2 2.5", "haus 1 1"]])
def test_the_lower_cased_form_serves_if_the_token_is_missing(
    tmp_path: Path, lines: list[str]
) -> None:
    assert rows(read(tmp_path, *lines)) == {HAUS: [2, 2.5]}
    assert rows(read(tmp_path, "haus 1 1.5", "HAUS 2 2", "Dog 3 3")) == {HAUS: [1, 1.5]}


def test_the_token_without_its_mark_serves_last(tmp_path: Path) -> None:
    vocabulary = Vocabulary(["x", f"{JOINER}.", "▁Dog", "▁"], [0, 4, 3, 2, 1])
    assert rows(read(tmp_path, "dog 1 2", ". 3 4", vocabulary=vocabulary)) == {5: [3, 4], 6: [1, 2]}
    assert rows(read(tmp_path, "dog 1 2", "Dog 3 4", "▁dog 5 6", vocabulary=vocabulary)) == {
        6: [5, 6]
    }
    assert rows(read(tmp_path, "Dog 3 4", "dog 1 2", vocabulary=vocabulary)) == {6: [3, 4]}


def test_the_first_of_several_vectors_counts(tmp_path: Path) -> None:
    assert rows(read(tmp_path, "the 1 2", "haus 5 6", "the 3 4", "haus 7 8")) == {
        THE: [1, 2],
        HAUS: [5, 6],
    }


@pytest.mark.parametrize("first", [[], ["3 2"]])
def test_tokens_with_spaces(tmp_path: Path, first: list[str]) -> None:
    vocabulary = Vocabulary(["the", ". . .", "at 1", "."], [0, 4, 3, 2, 1])
    lines = [*first, "the 5 6", ". . . 1 2", "at 1 3 4"]
    assert rows(read(tmp_path, *lines, vocabulary=vocabulary)) == {4: [5, 6], 5: [1, 2], 6: [3, 4]}


TOKENS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda token: token == token.strip(" ")
)
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    table=st.dictionaries(TOKENS, st.tuples(NUMBERS, NUMBERS, NUMBERS)),
    has_first_line=st.booleans(),
    ending=st.sampled_from(["\n", " \n", "\r\n"]),
)
def test_reads_what_was_written(
    table: dict[str, tuple[float, ...]],
    has_first_line: bool,
    ending: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    table = {"the": (1, 2, 3), **table}
    lines = [f"{len(table)} 3"] * has_first_line + [
        f"{token} {' '.join(map(str, row))}" for token, row in table.items()
    ]
    path = tmp_path_factory.mktemp("vectors") / "v.txt"
    path.write_bytes("".join(line + ending for line in lines).encode())
    vocabulary = Vocabulary.build(dict.fromkeys(table, 1))
    vectors = load_vectors(path, vocabulary, 3)
    assert rows(vectors) == {
        vocabulary.ids([token])[0]: list(row) for token, row in table.items() if token in vocabulary
    }


LINE = ", line {}: expected a token and 2 finite numbers, found {}; fix the line or delete it"
SIZE = ", line 1: vectors of {} numbers, but model.embedding_size is 2; set it to that, or give "


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": is empty"),
        (b"the 1 2 3\n", SIZE.format(3)),
        (b"1 3\nthe 1 2 3\n", SIZE.format(3)),
        (b"the 1\n", SIZE.format(1)),
        (b"the dog sleeps now\n", SIZE.format(3)),
        (b"the 1 2\ndog 3\n", LINE.format(2, "'3'")),
        (b"the 1 2\ndog 3 O.4\n", LINE.format(2, "'3 O.4'")),
        (b"the 1 nan\n", LINE.format(1, "'1 nan'")),
        (b"the 1 -1e39\n", LINE.format(1, "'1 -1e39'")),
        ("the 1 2\n".encode("utf-16"), ": is UTF-16 or no text; save it as UTF-8 text"),
        (
            "и 1 2\nв 3 4\n".encode(),
            ": has none of the vocabulary's 4 tokens; give a file of the text's language",
        ),
        (b"the 1 1\ndog 1 1\n", ": all vectors are the same for the vocabulary's 4 tokens"),
    ],
)
def test_an_unusable_file_is_refused_in_one_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "v.vec"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_vectors(path, VOCABULARY, 2)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_file_that_is_missing_or_truncated(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.vec: no such file"):
        load_vectors(tmp_path / "none.vec", VOCABULARY, 2)
    path = tmp_path / "v.vec.gz"
    path.write_bytes(gzip.compress(b"the 1 2\n" * 1000)[:20])
    with pytest.raises(DataError, match=r"v\.vec\.gz: is truncated or damaged"):
        load_vectors(path, VOCABULARY, 2)
