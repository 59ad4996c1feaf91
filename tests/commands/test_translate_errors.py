"""Errors of `nmt translate`: as early as possible, and finished lines are kept."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from nmt import cli
from nmt.decoding import forced as scoring
from nmt.decoding import translator
from nmt.run import load
from tests.conftest import Run

DOG = "The dog sees the tree."
BAD = b"Sch\xf6n\n"


@pytest.fixture
def trained(folder: Path) -> Path:
    """A run; tests read it."""
    return folder / "run"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["--n-best", 9],
            "9 translations per sentence: the beam is 5; set decoding.beam to 9 or more",
        ),
        (
            ["--n-best", 2, "--beam", 1],
            "2 translations per sentence: the beam is 1; set decoding.beam to 2 or more",
        ),
        (["--prefix", "Der zebra"], "prefix 'Der zebra': 'zebra' is not in the target vocabulary"),
    ],
)
def test_invalid_requests_are_refused_before_a_line_is_read(
    trained: Path,
    words: list[object],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reading, writing = os.pipe()  # reading from it would wait for ever
    with open(reading, encoding="utf-8") as stdin, open(writing, "wb"):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(
            sys, "argv", ["nmt", "translate", "--run", *map(str, [trained, *words])]
        )
        with pytest.raises(SystemExit) as exit_:
            cli.main()
    assert (exit_.value.code, capsys.readouterr().err) == (1, f"nmt: {text}\n")


def test_warnings_come_before_a_late_error(nmt: Run, trained: Path) -> None:
    for words in ([], ["--score"]):
        source = f"{DOG}\tDer Xyz.\n".encode() if words else b"qqq\n"
        lines = nmt(
            "translate", "--run", trained, *words, stdin=source + BAD + source
        ).err.splitlines()
        assert lines[0].startswith("nmt: line 1: ")
        assert lines[1:] == ["nmt: stdin, line 2: not UTF-8 (invalid start byte at byte 4)"]


@pytest.mark.parametrize("words", [[], ["--n-best", 2], ["--json"]])
def test_finished_lines_are_kept_after_a_late_error(
    nmt: Run, trained: Path, tmp_path: Path, words: list[object]
) -> None:
    output, partial, good = (
        tmp_path / "out.txt",
        tmp_path / "out.txt.partial",
        f"{DOG}\n\n{DOG}\n".encode(),
    )
    output.write_text("earlier\n")
    here = ["translate", "--run", trained, "-o", output, *words]
    fault = "stdin, line 4: not UTF-8 (invalid start byte at byte 4)"
    for _ in range(2):  # the second replaces the first
        result = nmt(*here, stdin=good + BAD + good)
        assert (result.status, result.err) == (
            1,
            f"nmt: {fault}; finished lines are in {partial}\n",
        )
        assert output.read_text() == "earlier\n"
        expected = nmt("translate", "--run", trained, *words, stdin=good).out
        assert partial.read_text(encoding="utf-8") == expected
    assert nmt(*here, stdin=good).status == 0
    assert output.read_text(encoding="utf-8") == expected
    assert {path.name for path in tmp_path.iterdir()} == {"out.txt"}


def test_without_finished_lines_there_is_no_partial_file(
    nmt: Run, trained: Path, tmp_path: Path
) -> None:
    assert nmt("translate", "--run", trained, "-o", tmp_path / "out.txt", stdin=BAD).err.endswith(
        "at byte 4)\n"
    )
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_an_interruption_keeps_finished_lines(trained: Path, tmp_path: Path) -> None:
    output, partial = tmp_path / "out.txt", tmp_path / "out.txt.partial"
    command = [sys.executable, "-m", "nmt", "translate", "--run", str(trained), "-o", str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"qqq\n")
        process.stdin.flush()
        end = time.monotonic() + 60
        while not partial.exists() or not partial.stat().st_size:
            assert time.monotonic() < end
        time.sleep(
            0.5
        )  # a signal just before Python waits for a line is noticed only after that line
        process.send_signal(signal.SIGINT)
        lines = process.stderr.read().decode().splitlines()
        assert process.wait(60) == 130
    assert lines[0].startswith("nmt: line 1: no word of the source is in the vocabulary")
    assert lines[1:] == [f"nmt: finished lines are in {partial}", "nmt: interrupted"]
    assert partial.read_text(encoding="utf-8").count("\n") == 1
    assert not output.exists()


def limit(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, most: int, longest: int
) -> list[int]:
    """Let only batches of at most `most` sentences of at most `longest` tokens fit into memory.
    Returns the list of their sizes.
    """
    real, sizes = getattr(module, name), list[int]()

    def limited(
        model: object, src: Sequence[Sequence[int]], *more: object, **others: object
    ) -> object:
        if len(src) > most or max(map(len, src)) > longest:
            raise RuntimeError(
                "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate "
                "memory: "
                "you tried ..."
            )
        sizes.append(len(src))
        return real(model, src, *more, **others)

    monkeypatch.setattr(module, name, limited)
    return sizes


def test_a_batch_that_does_not_fit_into_memory_is_halved(
    nmt: Run, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        f"The {noun} sees the {thing}."
        for noun in ("dog", "king", "man")
        for thing in ("tree", "day")
    ]
    here = ["translate", "--run", trained]
    expected = nmt(*here, *texts).out
    held = limit(monkeypatch, translator, "search", most=2, longest=99)
    assert nmt(*here, *texts).out == expected
    assert sorted(held) == [1, 1, 2, 2]
    pairs = "".join(f"{text}\tDer Hund.\n" for text in texts).encode()
    scores = nmt(*here, "--score", stdin=pairs).out
    limit(monkeypatch, scoring, "score_batch", most=1, longest=99)
    halved = nmt(*here, "--score", stdin=pairs).out
    assert [float(number) for number in halved.split()] == pytest.approx(
        [float(number) for number in scores.split()], abs=1e-3
    )


def test_a_sentence_that_does_not_fit_into_memory_is_named(
    nmt: Run, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, long = ["translate", "--run", trained], f"{DOG[:-1]} and {DOG}"
    first = nmt(*here, DOG).out
    reason = "does not fit into memory, even alone"
    limit(monkeypatch, translator, "search", most=9, longest=8)
    # The shorter line 4 is tried first; still it is line 2 that is named.
    result = nmt(*here, stdin="\n".join([DOG, f"{long} {long}", DOG, long]).encode())
    advice = "lower decoding.beam or decoding.max_source_tokens"
    assert (result.status, result.out, result.err) == (
        1,
        first,
        f"nmt: stdin, line 2: {reason}; {advice}\n",
    )
    drawn = nmt(*here, "--set", "decoding.method=sampling", "--n-best", 7, long)
    assert drawn.err == (
        f"nmt: command line, sentence 1: {reason}; lower the number of samples or "
        "decoding.max_source_tokens\n"
    )
    limit(monkeypatch, scoring, "score_batch", most=9, longest=8)
    scored = nmt(*here, "--score", f"{DOG}\tDer Hund.", f"{long}\tDer Hund.")
    assert (scored.status, scored.out.count("\n")) == (1, 1)
    assert scored.err.endswith(
        f"nmt: command line, sentence 2: {reason}; split it into sentences\n"
    )


def test_a_model_that_does_not_fit_into_memory(
    nmt: Run, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(load, "load_weights", refuse)
    result = nmt("translate", "--run", trained, DOG)
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert result.err.startswith("nmt: out of memory; ")


@pytest.mark.skipif(os.name == "nt", reason="no shell that closes streams")
def test_warnings_do_not_go_to_stdout_where_stderr_is_closed(trained: Path) -> None:
    command = f"{sys.executable} -m nmt translate --run {trained} --beam 1 qqq 2>&-"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert "no word of the source" not in done.stdout


def test_hints_that_fit(nmt: Run, trained: Path) -> None:
    config = trained / "config.yaml"
    hint = (
        "no bundle, or damaged (File is not a zip file); name the folder of a run, or a file "
        "that `nmt share bundle` wrote"
    )
    assert nmt("translate", "--run", config, DOG).err == f"nmt: {config}: {hint}\n"
