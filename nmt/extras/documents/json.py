"""JSON with the messages of a program."""

import json
import re
from collections.abc import Iterator
from functools import partial

from nmt.errors import FormatError
from nmt.extras.documents.document import Segment, Skipped
from nmt.extras.documents.messages import is_text, message
from nmt.texts.marked import Marked

TOKEN = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|[{}\[\]]')

MAX_KEY = 100  # characters of it that a remark shows


def find(text: str) -> Iterator[Segment | Skipped]:
    """The strings that are values. Raises: FormatError."""
    try:
        content = json.loads(text, parse_int=str)
    except json.JSONDecodeError as error:
        raise FormatError(f"line {error.lineno}: is no JSON ({error.msg})") from None
    except RecursionError:
        raise FormatError("line 1: is nested too deeply") from None
    values = [*content.values()] if isinstance(content, dict) else [None]
    # Extensions of browsers have descriptions beside each message.
    has_messages = all(isinstance(each, dict) and "message" in each for each in values)
    is_ascii = text.isascii() and r"\u" in text
    path, key = list[str](), ""  # of the objects and arrays around; of the value
    for token in TOKEN.finditer(text):
        if token[2]:
            key = token[1][:MAX_KEY]
        elif token[0] in "{[":
            path.append(key if token[0] == "{" else "")
        elif token[0] in "}]":
            key = path.pop()
        elif any(name.startswith("@") for name in (*path, key)):
            continue  # what ARB says about a message
        elif not has_messages or (len(path), key) == (2, "message"):
            value = json.loads(token[0])
            if is_text(value):
                write = partial(_written, is_ascii=is_ascii, has_slashes=r"\/" in token[1])
                name = ".".join(filter(None, [*path, key]))
                yield message(*token.span(1), Marked(value), write, name=name)


def _written(text: str, *, is_ascii: bool, has_slashes: bool) -> str:
    written = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
    return written.replace("/", r"\/") if has_slashes else written
