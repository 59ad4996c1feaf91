"""Translates documents without a model."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from nmt.data.formats import Languages
from nmt.extras.documents.document import TextDocument, open_document
from nmt.texts.marked import Marked


def document(
    name: str, file: str | bytes, languages: Languages | None = None, *, fill_all: bool = False
) -> TextDocument:
    data = file if isinstance(file, bytes) else file.encode()
    return open_document(data, name, fill_all=fill_all, languages=languages)


def texts(name: str, file: str | bytes) -> list[str]:
    """Those to translate."""
    return [segment.text.text for segment in document(name, file).segments]


def changed(
    name: str,
    file: str | bytes,
    change: Callable[[str], str] = str.upper,
    *,
    fill_all: bool = False,
) -> bytes:
    """The file with changed texts; all marks stay at their places."""
    found = document(name, file, fill_all=fill_all)
    segments = (segment.text for segment in found.segments)
    return b"".join(found.written([replace(each, text=change(each.text)) for each in segments]))


def unchanged(name: str, file: str | bytes) -> bytes:
    """The file translated by what it has: its translations, or its texts if it has one language."""
    found = document(name, file, fill_all=True)
    old = (each.text if each.target is None else each.target for each in found.segments)
    return b"".join(found.written(old))


def translated(name: str, file: str | bytes, translations: Iterable[Marked | str]) -> bytes:
    """The file with these, one for each text."""
    found = document(name, file)
    given = [each if isinstance(each, Marked) else Marked(each) for each in translations]
    assert len(found.segments) == len(given)
    return b"".join(found.written(given))
