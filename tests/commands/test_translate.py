"""`nmt translate` from the command line: its formats, its warnings, and bad input."""

import gc
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest

from nmt import cli
from nmt.commands import answers
from nmt.decoding import forced as scoring
from nmt.decoding import translator
from nmt.decoding.translation import Translation
from nmt.lines import CONVERT
from tests.conftest import Run
from tests.toy import write

BAD = b"Sch\xf6n\n"
DOG, KING = "The dog sees the tree.", "The king hears the river."


@pytest.fixture
def trained(folder: Path) -> Path:
    return folder / "run"


def test_json(nmt: Run, trained: Path) -> None:
    result = nmt("translate", "--run", trained, "--json", "--n-best", 3, DOG, "")
    assert gc.isenabled()
    first, empty = map(json.loads, result.out.splitlines())
    assert (first["source"], first["src_tokens"]) == (
        DOG,
        ["The", "dog", "sees", "the", "tree", "￭."],
    )
    assert first["text"] == first["n_best"][0]["text"]
    assert len({hypothesis["text"] for hypothesis in first["n_best"]}) == 3
    scores = [hypothesis["score"] for hypothesis in first["n_best"]]
    assert scores == sorted(scores, reverse=True)
    for hypothesis in first["n_best"]:
        assert sum(hypothesis["token_log_probs"]) == pytest.approx(hypothesis["log_prob"], abs=1e-5)
        assert (
            len(hypothesis["token_log_probs"]) == len(hypothesis["tokens"]) + hypothesis["complete"]
        )
        n_words = len(hypothesis["text"].split())
        assert all(source < 5 and output < n_words for source, output in hypothesis["alignment"])
    assert (first["replaced"], first["src_cut"], first["warnings"]) == ([], False, [])
    assert (empty["text"], empty["tokens"], empty["alignment"], empty["log_prob"]) == (
        "",
        [],
        [],
        0,
    )


def test_n_best_in_the_format_of_moses(nmt: Run, trained: Path) -> None:
    rows = [
        line.split(" ||| ")
        for line in nmt("translate", "--run", trained, "--n-best", 2, DOG, KING).out.splitlines()
    ]
    assert [row[0] for row in rows] == ["0", "0", "1", "1"]
    assert [rows[0][1], rows[2][1]] == nmt(
        "translate", "--run", trained, DOG, KING
    ).out.splitlines()
    assert float(rows[0][2]) >= float(rows[1][2])


def test_word_alignment(nmt: Run, trained: Path) -> None:
    lines = nmt("translate", "--run", trained, "--align", DOG, "", KING).out.split("\n")
    values = [
        json.loads(line)
        for line in nmt("translate", "--run", trained, "--json", DOG, "", KING).out.splitlines()
    ]
    assert len(lines) == 4
    assert lines[0]
    assert lines[:3] == [" ".join(f"{a}-{b}" for a, b in value["alignment"]) for value in values]


def test_attention_of_many_sentences_on_a_page(nmt: Run, trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    result = nmt(
        "translate", "--run", trained, "--attention", path, DOG, "", "<script>alert(1)</script>"
    )
    assert result.out.count("\n") == 3
    page = path.read_text(encoding="utf-8")
    assert page.count('<figure class="attention">') == 2
    assert f"<h2>1  {DOG}</h2>" in page
    assert "<h2>3  &lt;script&gt;alert(1)&lt;/script&gt;</h2>" in page
    text = "page.htm: cannot draw attention in this format; use .png, .svg, .pdf or .html\n"
    for name, problem in (("page.htm", text), ("none/a.html", "does not exist")):
        command = ("translate", "--run", trained, "--attention", tmp_path / name, DOG)
        nmt.refuses(problem, *command)


def test_given_translations_have_the_probability_of_search(
    nmt: Run, trained: Path, tmp_path: Path
) -> None:
    values = [
        json.loads(line)
        for line in nmt(
            "translate", "--run", trained, "--json", "--beam", 1, DOG, KING
        ).out.splitlines()
    ]
    pairs = write(
        tmp_path / "pairs.tsv", *(f"{value['source']}\t{value['text']}" for value in values)
    )
    result = nmt("translate", "--run", trained, "--score", "--file", pairs)
    rows = [line.split("\t") for line in result.out.splitlines()]
    for row, value in zip(rows, values, strict=True):
        assert float(row[0]) == pytest.approx(value["log_prob"], abs=1e-3)
        assert int(row[1]) == len(value["tokens"]) + 1
    *scored, total = map(
        json.loads,
        nmt("translate", "--run", trained, "--score", "--json", "--file", pairs).out.splitlines(),
    )
    assert [one["tokens"] for one in scored] == [value["tokens"] for value in values]
    assert total["log_prob"] == pytest.approx(sum(one["log_prob"] for one in scored))
    assert (total["pairs"], total["n_tokens"]) == (2, sum(one["n_tokens"] for one in scored))
    assert result.err == (
        f"2 lines: log-probability {total['log_prob']:.4f}, {total['n_tokens']} tokens, "
        f"perplexity {total['perplexity']:.4f}\n"
    )


def test_lines_that_are_not_pairs(nmt: Run, trained: Path) -> None:
    result = nmt(
        "translate", "--run", trained, "--score", stdin=f"{DOG}\tDer Xyz.\na\tb\tc\n".encode()
    )
    assert (result.status, result.out.count("\n")) == (1, 1)
    assert (
        "nmt: stdin, line 2: found 2 tabs; write the sentence, one tab, and its translation\n"
        in result.err
    )
    warned = nmt("translate", "--run", trained, "--score", f"{DOG}\tDer Xyz.")
    assert "sentence 1: a word of the translation is not in the vocabulary" in warned.err


def test_each_warning_is_printed_once(nmt: Run, trained: Path) -> None:
    source = (
        f"{DOG}\nDer König hört den Fluss.\n\nDer Hund sieht den Baum.\nqqq\n{DOG[:-1]}, {DOG}\n"
    )
    words = ["translate", "--run", trained, "--set", "decoding.max_source_tokens=8"]
    result = nmt(*words, stdin=source.encode())
    assert (result.status, result.out.count("\n")) == (0, 6)
    lines = result.err.splitlines()
    assert "nmt: lines 2, 4: the source seems to be in the target language already" in lines
    assert "nmt: line 5: no word of the source is in the vocabulary" in lines
    assert (
        "nmt: line 6: the source is longer than decoding.max_source_tokens and was truncated"
        in lines
    )
    warnings = [
        json.loads(line)["warnings"]
        for line in nmt(*words, "--json", stdin=source.encode()).out.splitlines()
    ]
    assert [warnings[0], warnings[2]] == [[], []]
    assert all("source in target language" in warnings[i] for i in (1, 3))


def test_bad_input(nmt: Run, trained: Path, tmp_path: Path) -> None:
    output = write(tmp_path / "out.txt", "earlier")
    here = ["translate", "--run", trained, "-o", output]
    text = f"nmt: {tmp_path / 'none.txt'}: no such file\n"
    nmt.refuses(text, *here, "--file", tmp_path / "none.txt")
    nmt.refuses("nmt: sentence 1: not UTF-8\n", *here, "--json", "Sch\udcf6n")
    text = f"nmt: stdin, line 1: not UTF-8 (invalid start byte at byte 4); {CONVERT}\n"
    nmt.refuses(text, *here, stdin=b"Sch\xf6n")
    text = "stdin, line 2: longer than 1,048,576 bytes"
    nmt.refuses(text, *here, stdin=b"a\n" + b"x" * 3_000_000)
    assert output.read_text() == "earlier\n"
    zeros = nmt("translate", "--run", trained, stdin=f"\0{DOG[:8]}\0{DOG[8:]}\n".encode()).out
    assert zeros == nmt("translate", "--run", trained, DOG).out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk(nmt: Run, trained: Path) -> None:
    text = "nmt: /dev/full: cannot be written (No space left on device)\n"
    nmt.refuses(text, "translate", "--run", trained, "-o", "/dev/full", DOG)


def test_a_model_without_attention_cannot_align(
    nmt: Run, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translation, "has_attention", False)
    for words in (
        ["--align"],
        ["--attention", tmp_path / "a.html"],
        ["--attention", tmp_path / "a.png"],
    ):
        text = f"nmt: {words[0]}: this model has no attention (model.attention.score: none)\n"
        result = nmt("translate", "--run", trained, *words, DOG)
        assert (result.status, result.err) == (1, text)


def line_of(stream: IO[bytes] | None) -> str:
    assert stream is not None
    assert select.select([stream], [], [], 120)[0], "nothing came"
    return stream.readline().decode()


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminal")
def test_a_keyboard_is_answered_at_once(trained: Path) -> None:
    import pty

    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "nmt", "translate", "--run", str(trained), "--beam", "1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=terminal, stdout=pipe, stderr=pipe) as process:
        assert line_of(process.stderr) == "nmt: type a sentence, Enter translates it; Ctrl-D ends\n"
        for sentence in (DOG, "qqq"):
            os.write(keyboard, f"{sentence}\n".encode())
            assert line_of(process.stdout).endswith("\n")
        assert (
            line_of(process.stderr) == "nmt: line 2: no word of the source is in the vocabulary\n"
        )
        os.write(keyboard, b"\x04")
        assert process.wait(60) == 0
    os.close(keyboard)
    os.close(terminal)


# --- Errors: as early as possible, and finished lines are kept


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
        fault = "nmt: stdin, line 2: not UTF-8 (invalid start byte at byte 4)"
        assert lines[1:] == [f"{fault}; {CONVERT}"]


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
    fault = f"stdin, line 4: not UTF-8 (invalid start byte at byte 4); {CONVERT}"
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
        f"at byte 4); {CONVERT}\n"
    )
    assert [*tmp_path.iterdir()] == []


def test_an_interruption_keeps_finished_lines(
    nmt: Run, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines_and_ctrl_c(*_: object) -> Iterator[list[str]]:
        yield ["qqq"]
        raise KeyboardInterrupt

    monkeypatch.setattr(answers, "stream_lines", lines_and_ctrl_c)
    result = nmt("translate", "--run", trained, "-o", tmp_path / "out.txt")
    partial = tmp_path / "out.txt.partial"
    assert result.status == 130
    assert result.err == (
        "nmt: line 1: no word of the source is in the vocabulary\n"
        f"nmt: finished lines are in {partial}\nnmt: interrupted\n"
    )
    assert partial.read_text(encoding="utf-8").count("\n") == 1
    assert [*tmp_path.iterdir()] == [partial]


def limit(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> None:
    """Let only sentences of at most 8 tokens fit into memory."""
    real = getattr(module, name)

    def limited(
        model: object, src: Sequence[Sequence[int]], *more: object, **others: object
    ) -> object:
        if max(map(len, src)) > 8:
            raise RuntimeError(
                "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: "
                "you tried ..."
            )
        return real(model, src, *more, **others)

    monkeypatch.setattr(module, name, limited)


def test_a_sentence_that_does_not_fit_into_memory_is_named(
    nmt: Run, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, long = ["translate", "--run", trained], f"{DOG[:-1]} and {DOG}"
    first = nmt(*here, DOG).out
    reason = "does not fit into memory, even alone"
    limit(monkeypatch, translator, "search")
    # The shorter line 4 is tried first; still it is line 2 that is named.
    result = nmt(*here, stdin="\n".join([DOG, f"{long} {long}", DOG, long]).encode())
    advice = "lower decoding.beam or decoding.max_source_tokens"
    assert (result.status, result.out, result.err) == (
        1,
        first,
        f"nmt: stdin, line 2: {reason}; {advice}\n",
    )
    text = f"sentence 1: {reason}; lower the number of samples or decoding.max_source_tokens\n"
    samples = ("--set", "decoding.method=sampling", "--n-best", 7, long)
    nmt.refuses(f"nmt: command line, {text}", *here, *samples)
    limit(monkeypatch, scoring, "score_batch")
    scored = nmt(*here, "--score", f"{DOG}\tDer Hund.", f"{long}\tDer Hund.")
    assert (scored.status, scored.out.count("\n")) == (1, 1)
    assert scored.err.endswith(
        f"nmt: command line, sentence 2: {reason}; split it into sentences\n"
    )


def test_warnings_do_not_go_to_stdout_where_stderr_is_closed(
    nmt: Run, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    result = nmt("translate", "--run", trained, "qqq")
    sys.stderr.close()  # what nmt opened in its place
    assert (result.status, result.out.count("\n")) == (0, 1)
    assert "no word of the source" not in result.out
