"""`nmt check`: compares a translation with its source, without a model."""

from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import JsonOption, to_json
from nmt.config.parts import DOCUMENT_FORMATS, FORMATS, format_of, refuse_unread
from nmt.errors import DataError
from nmt.extras.check.findings import Text, find_all, first_difference
from nmt.files import explain_read_errors
from nmt.lines import read_text_lines
from nmt.texts.glossary import Glossary
from nmt.texts.marked import Marked


def command(
    source: Annotated[Path, typer.Argument(help="Lines of text, or a document.", metavar="SOURCE")],
    translation: Annotated[
        Path | None,
        typer.Argument(
            help="Its translation; not needed if SOURCE has both languages (po, xliff).",
            metavar="TRANSLATION",
        ),
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(
            "--glossary",
            help="Terms that must be translated so; each line: term, tab, translation.",
            metavar="FILE",
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Of the files, or lines. Default: as their suffixes say.",
            metavar="NAME",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what was found. Exit status 1 if anything was.

    Raises:
        DataError: a file cannot be read, or one has more texts than the other.
    """
    unit, texts = read_texts(source, translation, format_)
    name = translation or source
    findings = [*find_all(texts, None if glossary is None else Glossary.read(glossary))]
    if as_json:
        rows = [
            {
                "file": str(name),
                "line": each.text.line,
                "kind": each.kind,
                "problem": each.problem,
                "source": each.text.source.written,
                "translation": each.text.translation.written,
            }
            for each in findings
        ]
        print(to_json(rows))
    else:
        for each in findings:
            print(f"{name}, {unit} {each.text.line}: {each.problem}")
        n = len(findings)
        found = f"{n:,} finding{'s' if n > 1 else ''}" if n else "nothing found"
        print(f"{found} in {len(texts):,} text{'s' if len(texts) != 1 else ''}")
    if findings:
        raise typer.Exit(1)


def read_texts(
    source: Path, translation: Path | None, format_: str | None
) -> tuple[str, list[Text]]:
    """What the numbers count, such as lines, and each source with its translation.

    Raises:
        DataError: as `command`.
    """
    unit, sources = read(source, format_)
    if translation is None:
        if any(target is None for _, _, target, _ in sources):
            raise DataError(f"{source}: has one language; name its translation, too")
        return unit, [
            Text(line, text, target or Marked(""), is_form)
            for line, text, target, is_form in sources
        ]
    unit, own = read(translation, format_)
    found = [(line, target or text) for line, text, target, _ in own]
    if len(sources) != len(found):
        index = first_difference([text for _, text, *_ in sources], [text for _, text in found])
        places = [
            f"{unit} {texts[index][0]}" if index < len(texts) else "the end"
            for texts in (sources, found)
        ]
        raise DataError(
            f"{source} has {len(sources):,} texts, {translation} {len(found):,}; they seem to "
            f"differ from {places[0]} of the one and {places[1]} of the other on"
        )
    pairs = zip(sources, found, strict=True)
    return unit, [
        Text(line, text, translated, is_form) for (_, text, _, is_form), (line, translated) in pairs
    ]


def read(
    path: Path, format_: str | None
) -> tuple[str, list[tuple[int, Marked, Marked | None, bool]]]:
    """The texts of a file: what their numbers count; the number, the text, the translation if the
    file may have one, and whether it is a plural form. Raises: DataError.
    """
    if format_ is None:
        refuse_unread(str(path))
    format_ = format_ or format_of(path.name) or "lines"
    if format_ in ("lines", "txt"):
        texts = enumerate(read_text_lines(path), 1)
        return "line", [(number, Marked(line), None, False) for number, line in texts]
    if format_ not in DOCUMENT_FORMATS:
        raise DataError(f"{path}: unknown format; known are {', '.join(DOCUMENT_FORMATS)}, lines")
    open_document = FORMATS[format_].load("opens")
    with explain_read_errors(path):
        document = open_document(path.read_bytes(), str(path), format_, fill_all=True)
    parts = zip(document.lines, document.segments, strict=True)
    return document.unit, [
        (
            line,
            each.text if each.labelled is None else Marked(each.labelled),
            each.target,
            each.is_form,
        )
        for line, each in parts
    ]
