"""Documents on the command line."""

from pathlib import Path

import pytest

from tests.conftest import Run

DOG, KING = "The dog sees the tree.", "The king hears the river."


@pytest.fixture
def here(nmt: Run, folder: Path) -> list[object]:
    return ["translate", "--run", folder / "run", "--file"]


def test_a_document_is_translated_as_its_lines_are(
    nmt: Run, here: list[object], tmp_path: Path
) -> None:
    dog, king = nmt(*here[:-1], DOG, KING).out.splitlines()
    path, output = tmp_path / "README.MD", tmp_path / "out.md"
    path.write_bytes(f"# {DOG}\r\n\r\n    code\r\n\r\n- {KING}\r\n".encode())
    assert nmt(*here, path, "-o", output).status == 0
    assert output.read_bytes().decode() == f"# {dog}\r\n\r\n    code\r\n\r\n- {king}\r\n"
    page = f"<p>{DOG}<p>{KING}".encode()
    assert nmt(*here, "-", "--format", "html", stdin=page).out == f"<p>{dog}<p>{king}"
    assert nmt(*here[:-1], "--format", "html", stdin=page).out == f"<p>{dog}<p>{king}"


def test_plain_text_keeps_what_is_around_its_lines(
    nmt: Run, here: list[object], tmp_path: Path
) -> None:
    dog, king = nmt(*here[:-1], DOG, KING).out.splitlines()
    path, output = tmp_path / "in.txt", tmp_path / "out.txt"
    for encoding in ("utf-8-sig", "utf-16", "utf-8"):
        path.write_bytes(f"  {DOG} \r\n\r\n\t{KING}".encode(encoding))
        result = nmt(*here, path, "-o", output)
        assert result.status == 0
        remark = f"the translation is in UTF-16-LE, as {path} is"
        assert (remark in result.err) == (encoding == "utf-16")
        assert output.read_bytes() == f"  {dog} \r\n\r\n\t{king}".encode(encoding)
    lines = f"{dog}\n\n{king}\n"
    assert nmt(*here, path, "--format", "lines").out == lines
    assert nmt(*here, path, "--n-best", 2).out.startswith(f"0 ||| {dog} ||| -")
    (tmp_path / "in.en").write_bytes(path.read_bytes())
    assert nmt(*here, tmp_path / "in.en").out == lines


def test_warnings_name_the_lines_of_the_file(nmt: Run, here: list[object], tmp_path: Path) -> None:
    path = tmp_path / "in.html"
    path.write_text(f"<p>\n{DOG}\n</p>\n<p>\nqqq</p>\n<p>qqq</p>")
    assert nmt(*here, path).err.startswith("nmt: lines 5, 6: ")


def test_a_document_says_its_language(nmt: Run, here: list[object], tmp_path: Path) -> None:
    path = tmp_path / "in.html"
    path.write_text(f'<html lang="en"><p>{DOG}</p></html>')
    assert nmt.prints(*here, path).startswith('<html lang="de"><p>')
    path.write_text(f'<html lang="fr"><p>{DOG}</p></html>')
    result = nmt(*here, path)
    assert result.out.startswith('<html lang="fr"><p>')
    assert result.err == (
        "nmt: line 1: names the language fr, but the run translates en to de; use another run, or "
        "correct the file\n"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("in.yaml", "is a file of messages in a format that nmt does not read; convert it to .po"),
        ("in.ASS", "is subtitles in a format that nmt does not read; convert it to .srt"),
        ("in.tsv", "is a table in a format that nmt does not read; save its texts as .txt"),
        ("in.mo", "is a compiled catalog in a format that nmt does not read; translate the file"),
        ("in.vue", "is a template in a format that nmt does not read; rename one of HTML to .html"),
        ("in.odt", "is a document in a format that nmt does not read; save it as .docx or .html"),
    ],
)
def test_other_formats_are_refused(
    name: str, text: str, nmt: Run, here: list[object], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(f"{DOG}\n")
    nmt.refuses(f"{path}: {text}", *here, path)
    assert nmt(*here, path, "--format", "lines").status == 0


def test_a_fault_in_plain_text_keeps_the_lines_before_it(
    nmt: Run, here: list[object], tmp_path: Path
) -> None:
    path, output = tmp_path / "in.txt", tmp_path / "out.txt"
    path.write_bytes(f"{DOG}\n".encode() + b"\xff\n")
    assert "in.txt, line 2: not UTF-8" in nmt(*here, path, "-o", output).err
    assert (tmp_path / "out.txt.partial").read_text().count("\n") == 1
    path.rename(tmp_path / "in.md")
    assert "in.md, line 2: not UTF-8" in nmt(*here, tmp_path / "in.md", "-o", output).err
    assert not output.exists()


@pytest.mark.parametrize(
    ("name", "words", "problem"),
    [
        ("a.md", ["--json"], "--json needs lines of text, and this file is md; remove --json, or"),
        ("a.html", ["--prefix", "x"], "--prefix needs lines of text, and this file is html"),
        ("a.txt", ["--format", "word"], "--format word: unknown; known are txt, md, html, docx"),
        ("a.md", ["--fill", "all"], "--fill is for files with both languages (po, xliff)"),
        ("a.txt", ["--format", "docx"], "a.txt: damaged, or no .docx (File is not a zip file)"),
        ("a.docx", [], "a.docx: damaged, or no .docx (File is not a zip file); save it as"),
        ("none.md", [], "none.md: no such file"),
        ("none.txt", [], "none.txt: no such file"),
        ("a.json", [], "; --format lines translates it line by line"),
        ("a.xliff", [], "a.xliff, line 1: not well-formed (syntax error); --format lines"),
    ],
)
def test_errors(
    nmt: Run, here: list[object], tmp_path: Path, name: str, words: list[str], problem: str
) -> None:
    if "none" not in name:
        (tmp_path / name).write_text("No more than text.")
    result = nmt(*here, tmp_path / name, *words)
    assert result.status != 0
    assert problem in " ".join(result.err.split())
    assert result.out == ""


def test_sentences_have_no_format(nmt: Run, here: list[object]) -> None:
    assert "give sentences or --file, not both" in nmt(*here[:-1], "--format", "md", DOG).err
