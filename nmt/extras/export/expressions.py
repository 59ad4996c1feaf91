"""Regular expressions of Python, as JavaScript writes them."""

import re
from re import _parser  # type: ignore[attr-defined] # reads a pattern as Python does
from typing import Any

_WORD, _SPACE = r"\p{L}\p{N}_", r"\p{White_Space}\x1c-\x1f"
# How JavaScript writes each part of a regular expression; what it lacks is a KeyError.
_PARTS: dict[str, Any] = {
    "LITERAL": lambda code: chr(code) if chr(code).isalnum() else f"\\u{{{code:x}}}",
    "NOT_LITERAL": lambda code: f"[^\\u{{{code:x}}}]",
    "RANGE": lambda ends: f"\\u{{{ends[0]:x}}}-\\u{{{ends[1]:x}}}",
    "NEGATE": lambda _: "^",
    "ANY": lambda _: r"[^\n]",
    "IN": lambda items: f"[{_convert(items)}]",
    "CATEGORY": lambda name: _PARTS[str(name)],
    "CATEGORY_DIGIT": r"\p{Nd}",
    "CATEGORY_SPACE": f"[{_SPACE}]",
    "CATEGORY_NOT_SPACE": f"[^{_SPACE}]",
    "CATEGORY_WORD": f"[{_WORD}]",
    "CATEGORY_NOT_WORD": f"[^{_WORD}]",
    "AT": lambda name: _PARTS[str(name)],
    "AT_BEGINNING": "^",
    "AT_END": "$",  # no text ends with a line feed
    "AT_BOUNDARY": f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))",
    "BRANCH": lambda value: f"(?:{'|'.join(map(_convert, value[1]))})",
    "SUBPATTERN": lambda value: f"({'' if value[0] else '?:'}{_convert(value[3])})",
    "MAX_REPEAT": lambda value: (
        f"(?:{_convert(value[2])}){{{value[0]},{str(value[1]).strip('MAXREPT')}}}"
    ),
    "MIN_REPEAT": lambda value: _PARTS["MAX_REPEAT"](value) + "?",
    "ASSERT": lambda value: f"(?{'=' if value[0] > 0 else '<='}{_convert(value[1])})",
    "ASSERT_NOT": lambda value: f"(?{'!' if value[0] > 0 else '<!'}{_convert(value[1])})",
}


def _convert(items: Any) -> str:
    return "".join(_PARTS[str(name)](value) for name, value in items)


def to_javascript(method: Any) -> tuple[str, str]:
    """Source and flags of a regular expression that finds what a method of Python's finds."""
    pattern, name = method.__self__, method.__name__
    source = _convert(_parser.parse(pattern.pattern, pattern.flags))
    source = {"match": f"^(?:{source})", "fullmatch": f"^(?:{source})$"}.get(name, source)
    return source, "v" + "i" * bool(pattern.flags & re.I) + "g" * (name == "finditer")
