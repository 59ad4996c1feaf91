"""Translates documents without a model: into themselves, and into capital letters."""

from dataclasses import replace

from nmt.extras.documents.document import open_document


def identity(data: bytes, name: str) -> bytes:
    document = open_document(data, name)
    return b"".join(document.written([each.text for each in document.segments]))


def in_capitals(data: bytes, name: str) -> bytes:
    """All marks stay at their places."""
    document = open_document(data, name)
    texts = [replace(each.text, text=each.text.text.upper()) for each in document.segments]
    return b"".join(document.written(texts))


def texts(data: bytes, name: str) -> list[str]:
    return [each.text.text for each in open_document(data, name).segments]
