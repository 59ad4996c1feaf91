"""Pretrained word vectors: reading files, and errors of unusable files."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.extras.vectors.vectors import load_vectors
from nmt.text.tokenizers import JOINER
from nmt.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary.build(
    {"the": 60, "dog": 20, "Haus": 10, "schön": 8, "rare": 1}, min_frequency=2
)
THE, DOG, HAUS, SCHOEN = range(4, 8)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(path: Path, vocabulary: Vocabulary, size: int) -> dict[int, list[float]]:
    ids, matrix, _ = load_vectors(path, vocabulary, size)
    assert matrix.dtype == np.float32
    return dict(zip(ids.tolist(), matrix.tolist(), strict=True))


MARKED = Vocabulary(["x", f"{JOINER}.", "▁Dog", "▁"], [0, 4, 3, 2, 1])
SPACED = Vocabulary(["the", ". . .", "at 1", "."], [0, 4, 3, 2, 1])
PHRASES = ["the 5 6", ". . . 1 2", "at 1 3 4"]


@pytest.mark.parametrize(
    ("vocabulary", "lines", "expected"),
    [
        # only those of the vocabulary
        (
            VOCABULARY,
            ["schön 1 2.5", "cat 3 4", "<unk> 5 6", "<pad> 5 6", "the -7e-1 8"],
            {THE: [np.float32(-0.7), 8], SCHOEN: [1, 2.5]},
        ),
        # the header and the kind of space are optional
        (VOCABULARY, ["the 1 2", "dog 3 4"], {THE: [1, 2], DOG: [3, 4]}),
        (VOCABULARY, ["2 2", "the 1 2", "dog 3 4"], {THE: [1, 2], DOG: [3, 4]}),
        (VOCABULARY, ["2 2 ", "the 1 2 ", "dog\t3\t4\r", "", " "], {THE: [1, 2], DOG: [3, 4]}),
        # the lower-cased form serves if the token is missing
        (VOCABULARY, ["haus 1 1", "Haus 2 2.5"], {HAUS: [2, 2.5]}),
        (VOCABULARY, ["Haus 2 2.5", "haus 1 1"], {HAUS: [2, 2.5]}),
        (VOCABULARY, ["haus 1 1.5", "HAUS 2 2", "Dog 3 3"], {HAUS: [1, 1.5]}),
        # then the token without its mark
        (MARKED, ["dog 1 2", ". 3 4"], {5: [3, 4], 6: [1, 2]}),
        (MARKED, ["dog 1 2", "Dog 3 4", "▁dog 5 6"], {6: [5, 6]}),
        (MARKED, ["Dog 3 4", "dog 1 2"], {6: [3, 4]}),
        # the first of several vectors counts
        (VOCABULARY, ["the 1 2", "haus 5 6", "the 3 4", "haus 7 8"], {THE: [1, 2], HAUS: [5, 6]}),
        # tokens with spaces
        (SPACED, PHRASES, {4: [5, 6], 5: [1, 2], 6: [3, 4]}),
        (SPACED, ["3 2", *PHRASES], {4: [5, 6], 5: [1, 2], 6: [3, 4]}),
    ],
)
def test_which_vector_a_token_gets(
    tmp_path: Path, vocabulary: Vocabulary, lines: list[str], expected: dict[int, list[float]]
) -> None:
    assert read(write(tmp_path / "v.txt", *lines), vocabulary, 2) == expected


def test_gzip_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "v.vec.gz"
    path.write_bytes(gzip.compress("\ufeffthe 1 2\nschön 3 4\n".encode()))
    assert read(path, VOCABULARY, 2) == {THE: [1, 2], SCHOEN: [3, 4]}
    path.write_bytes(gzip.compress(b"the 1 2\n" * 1000)[:20])
    with pytest.raises(DataError, match=r"v\.vec\.gz: is truncated or damaged"):
        load_vectors(path, VOCABULARY, 2)


def test_coverage_counts_tokens_and_running_words(tmp_path: Path) -> None:
    path = write(tmp_path / "v.txt", "the 1 2", "dog 3 4")
    _, _, coverage = load_vectors(path, VOCABULARY, 2)
    assert coverage == "2 of 4 tokens (50.0 %), 80.8 % of the running words, from v.txt"


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
    assert read(path, vocabulary, 3) == {
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
