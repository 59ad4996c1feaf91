"""Pretrained word vectors: reading files, errors of unusable files, and trainings that start from
vectors.
"""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.load import load_config
from nmt.errors import DataError
from nmt.extras.vectors.vectors import load_vectors
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import load_weights
from nmt.run.folder import build_model, find_checkpoint, load_vocabularies
from nmt.text.tokenizers import JOINER
from nmt.text.vocabulary import Vocabulary
from tests import toy
from tests.conftest import Run

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
    _, _, coverage = load_vectors(path, VOCABULARY, 2)
    assert coverage == "2 of 4 tokens (50.0 %), 68.7 % of the running words, from v.vec.gz"
    path.write_bytes(gzip.compress(b"the 1 2\n" * 1000)[:20])
    with pytest.raises(DataError, match=r"v\.vec\.gz: is truncated or damaged"):
        load_vectors(path, VOCABULARY, 2)


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
        ("the 1 2\n".encode("utf-16-le"), ": is UTF-16 or no text; save it as UTF-8 text"),
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


@pytest.fixture
def config(nmt: Run, tmp_path: Path) -> Path:
    values = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(tmp_path / "prepared")},
        tokenizer={"kind": "words"},
        model={
            "embedding_size": 16,
            "encoder": {"hidden_size": 16},
            "decoder": {"hidden_size": 16},
            "tie_embeddings": "target",
        },
        training={**toy.ONE_UPDATE, "learning_rate": {"peak": 1e-9}, "log_every": 1},
    ).to_dict()
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    assert nmt("prepare", "-c", path).status == 0
    return path


def write_vectors(path: Path, tokens: list[str], size: int = 16) -> np.ndarray:
    rows = np.random.default_rng(len(tokens)).normal(scale=0.01, size=(len(tokens), size))
    lines = [
        f"{token} {' '.join(map(str, row))} \n"
        for token, row in zip(tokens, rows.tolist(), strict=True)
    ]
    path.write_text(f"{len(tokens)} {size}\n{''.join(lines)}", encoding="utf-8")
    return rows


def events_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]


def test_training_starts_from_word_vectors_and_resumes_without_them(
    nmt: Run, config: Path, tmp_path: Path
) -> None:
    src, tgt = load_vocabularies(tmp_path / "prepared")
    known, file, run = list(tgt)[6:], tmp_path / "de.vec", tmp_path / "run"
    rows = write_vectors(file, [*known, "<pad>", "elsewhere"])[: len(known)]
    words = ["train", "-c", config, "-o", run, "--set", f"model.tgt_vectors={file}"]
    dry, done = nmt(*words, "--dry-run"), nmt(*words)
    assert done.status == 0, done.err
    (line,) = [line for line in done.err.splitlines() if "vectors: " in line]
    assert line.startswith(f"tgt vectors: {len(known)} of {len(tgt) - 4} tokens (")
    assert line.endswith(" % of the running words, from de.vec")
    assert line in dry.out.splitlines()
    begun = events_of(run)
    assert begun[0] == {"event": "weights", "step": 0, "text": line}

    model = build_model(run, load_config(run / "config.yaml"))
    load_weights(find_checkpoint(run), model)
    torch.manual_seed(1)
    first = Seq2Seq(load_config(run / "config.yaml").model, len(src), len(tgt)).tgt_embedding.weight
    weight, ids = model.tgt_embedding.weight.detach(), tgt.ids(known)
    others = np.setdiff1d(np.arange(len(tgt)), ids)
    scale = first.std(correction=0).item() / rows.std()
    np.testing.assert_allclose(weight[ids], rows * scale, atol=1e-6)
    torch.testing.assert_close(weight[others], first.detach()[others], atol=1e-6, rtol=0)
    assert model.get_parameter("output.logits.weight") is model.tgt_embedding.weight

    shutil.copytree(run, tmp_path / "ended before a checkpoint")
    shutil.rmtree(tmp_path / "ended before a checkpoint" / "checkpoints")
    again = [*words[:4], tmp_path / "ended before a checkpoint", *words[5:]]
    assert nmt(*again, "--resume").status == 0
    events = events_of(tmp_path / "ended before a checkpoint")
    assert [event["event"] for event in events] == [event["event"] for event in begun]
    file.unlink()
    resumed = nmt(*words, "--set", "training.max_steps=2", "--resume")
    assert (resumed.status, "vectors" in resumed.err) == (0, False)
    assert events_of(run)[: len(begun)] == begun


def test_word_vectors_that_cannot_be_used_leave_no_run(
    nmt: Run, config: Path, tmp_path: Path
) -> None:
    write_vectors(tmp_path / "size.vec", ["The"], size=3)
    for side, name, message in (
        ("src", "none.vec", "none.vec: no such file"),
        ("tgt", "size.vec", "size.vec, line 1: vectors of 3 numbers, but model.embedding_size is"),
    ):
        for option in ("--resume", "--dry-run"):
            key = f"model.{side}_vectors={tmp_path / name}"
            result = nmt("train", "-c", config, "-o", tmp_path / "run", "--set", key, option)
            assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
            assert result.err.startswith(f"nmt: model.{side}_vectors: ")
            assert message in result.err
            assert not (tmp_path / "run").exists()
