"""`nmt translate-files`: each part whole or not there; what is done is skipped;
bad parts stop no others.
"""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from tests import toy
from tests.conftest import Run

PARTS = Path("parts")
SOURCES = [src for src, _ in toy.sentence_pairs()[:20]]


@pytest.fixture
def call(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The translation of four parts of 5 lines in parts/, in the working folder, two of them
    packed.
    """
    monkeypatch.chdir(tmp_path)
    PARTS.mkdir()
    for i, name in enumerate(("a.txt", "b.txt.gz", "c.gz", "d.txt")):
        text = "".join(f"{source}\n" for source in SOURCES[5 * i : 5 * i + 5]).encode()
        (PARTS / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return ["translate-files", "--run", folder / "run", "--file", "parts/*", "-o", "out"]


def outputs(folder: str = "out") -> dict[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(Path(folder).iterdir())
        if path.name != ".nmt"
    }


def test_each_part_has_a_file_with_the_lines_of_a_single_call(nmt: Run, call: list[Any]) -> None:
    result = nmt(*call)
    assert (result.status, result.out) == (0, "")
    assert f"nmt: {Path('out/a.txt')}: 5 lines in " in result.err
    Path("whole.txt").write_text("".join(f"{source}\n" for source in SOURCES), encoding="utf-8")
    expected = nmt("translate", *call[1:3], "--file", "whole.txt").out
    assert [*outputs()] == ["a.txt", "b.txt", "c", "d.txt"]
    assert "".join(outputs().values()) == expected
    Path("single").mkdir()
    assert nmt(*call, "--file", "parts/b.txt.gz", "-o", "single").status == 0
    assert outputs("single") == {"b.txt": outputs()["b.txt"]}


def test_what_is_done_is_skipped_and_what_has_changed_is_translated_again(
    nmt: Run, call: list[Any]
) -> None:
    nmt(*call)
    whole = outputs()
    assert nmt(*call).err == "nmt: 4 of 4 parts are already translated\n"
    os.utime("parts/a.txt", ns=(1, 1))  # touched, but the content is the same
    Path("out/c").unlink()
    Path("out/d.txt").write_text("cut off")
    Path("parts/b.txt.gz").write_bytes(gzip.compress(f"{SOURCES[0]}\n".encode()))
    again = nmt(*call)
    assert again.err.startswith("nmt: 1 of 4 parts are already translated\n")
    assert outputs() == {**whole, "b.txt": whole["a.txt"].split("\n")[0] + "\n"}


def test_another_model_or_other_settings_need_another_folder(nmt: Run, call: list[Any]) -> None:
    call += ["--memory", toy.write_table(Path("memory.tsv"), [("A man.", "Ein Mann.")])]
    nmt(*call)
    whole = outputs()
    text = (
        "out: holds translations with other settings (json was False, is True; decoding.beam "
        "was 5, is 2); choose another folder"
    )
    nmt.refuses(text, *call, "--beam", 2, "--json")
    nmt.refuses("other settings (model was ['", *call, *call[1:3])
    toy.write_table(Path("memory.tsv"), [("A man.", "Mann.")])
    nmt.refuses("other settings (memory was ['memory.tsv ", *call)
    Path("out/.nmt/settings.json").write_text("{}}")
    text = "settings.json: damaged; delete out to translate all parts again"
    nmt.refuses(text, *call)
    assert outputs() == whole


def test_shards_share_the_parts(nmt: Run, call: list[Any]) -> None:
    for shard, names in (
        ("2/3", ["b.txt"]),
        ("1/3", ["a.txt", "b.txt", "d.txt"]),
        ("3/3", ["a.txt", "b.txt", "c", "d.txt"]),
    ):
        assert nmt(*call, "--shard", shard).status == 0
        assert [*outputs()] == names
    assert nmt(*call, "--shard", "5/5").status == 0  # fewer parts than shards
    for shard in ("0/3", "4/3", "1", "1/0", "a/b", "-1/3"):
        nmt.refuses(f"--shard {shard}: write number/count", *call, "--shard", shard, status=2)


def test_damaged_parts_do_not_stop_the_others(nmt: Run, call: list[Any]) -> None:
    (PARTS / "b.txt.gz").write_bytes((PARTS / "b.txt.gz").read_bytes()[:-20])
    (PARTS / "c.gz").write_bytes(gzip.compress(b"A dog.\n\xff\n"))
    result = nmt(*call)
    assert result.status == 1
    for text in (
        f"nmt: {PARTS / 'b.txt.gz'}: is truncated or damaged",
        f"nmt: {PARTS / 'c.gz'}, line 2: not UTF-8",
        "2 of 4 parts could not be translated: b.txt.gz, c.gz; repair them, then repeat",
    ):
        assert text in result.err
    assert [*outputs()] == ["a.txt", "d.txt"]
    for name in ("b.txt.gz", "c.gz"):
        (PARTS / name).write_bytes(gzip.compress(b"A dog.\n"))
    assert nmt(*call).err.startswith("nmt: 2 of 4 parts are already")
    assert outputs()["b.txt"] == outputs()["c"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--file", "none/*.gz", "-o", "out"], "*.gz: no such files"),
        (
            ["--file", "parts/*", "-o", "parts"],
            "parts: holds the parts themselves; choose another folder with -o",
        ),
        (
            ["--file", "parts/*", "-o", "parts/a.txt"],
            "is a file; the translations of several files need a folder",
        ),
        (["--file", "parts/*"], "Missing option '-o' / '--output'"),
        (["-o", "out"], "Missing option '--file'"),
        (["--file", "parts/a.txt", "-o", "out", "parts/b.txt.gz"], "unexpected extra argument"),
    ],
)
def test_bad_options(words: list[str], problem: str, nmt: Run, call: list[Any]) -> None:
    result = nmt(*call[:3], *words)
    assert result.status != 0
    assert problem in " ".join(result.err.split()).replace("│ ", "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("de.po", "de.po: is a document; `nmt translate --file` keeps its format"),
        ("page.html.gz", "page.html.gz: is a document; `nmt translate --file` keeps its format"),
        ("film.ass.gz", "film.ass: is subtitles in a format that nmt does not read; convert it"),
        (
            "a.txt.gz",
            "a.txt.gz: would have the same translation as parts/a.txt, out/a.txt; rename one of "
            "them",
        ),
    ],
)
def test_one_bad_name_is_refused_before_all(
    name: str, text: str, nmt: Run, call: list[Any]
) -> None:
    (PARTS / name).touch()
    nmt.refuses(text, *call)
    assert not Path("out").exists()
