"""What the tests of formats do with a file: translate it with an identity, or into capitals."""

from collections.abc import Callable
from dataclasses import replace

from nmt.extras.documents.document import TextDocument, open_document
from nmt.texts.marked import Marked


def document(name: str, text: str, *, fill_all: bool = False) -> TextDocument:
    return open_document(text.encode(), name, fill_all=fill_all)


def texts(name: str, text: str) -> list[str]:
    """Those to translate."""
    return [segment.text.text for segment in document(name, text).segments]


def translated(
    name: str, text: str, change: Callable[[str], str] = str.upper, *, fill_all: bool = False
) -> str:
    """The file with changed texts; all markup stays at its place."""
    found = document(name, text, fill_all=fill_all)
    translations = [
        replace(segment.text, text=change(segment.text.text)) for segment in found.segments
    ]
    return b"".join(found.written(translations)).decode()


def into(*translations: Marked | str) -> Callable[[str, str], str]:
    """Translates a file by these, one for each text."""

    def translate(name: str, text: str) -> str:
        given = [each if isinstance(each, Marked) else Marked(each) for each in translations]
        found = document(name, text)
        assert len(found.segments) == len(given)
        return b"".join(found.written(given)).decode()

    return translate
