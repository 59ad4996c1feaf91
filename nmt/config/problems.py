"""Problems in a configuration, and the messages about them."""

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError

from nmt.config.schema import PATTERN_TEXTS, Config
from nmt.config.section import named_sections_of, section_of

# What a value must be, by pydantic's type of error; the fields in braces come from the error's
# context.
REQUIREMENTS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "path_type": "text",
    "model_type": "a section (keys and values)",
    "dict_type": "a section (keys and values)",
    "list_type": "a list",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}

MAX_SHOWN = 100  # characters of a value


class Problem(NamedTuple):
    """A problem in a configuration.

    Args:
        keys: the dotted keys that cause it.
        text: the error, and the remedy.
    """

    keys: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{', '.join(self.keys)}: {self.text}"


def explain(error: ValidationError) -> list[Problem]:
    """The problems that pydantic found, one for each key (or entry of a list or mapping).

    Where a key allows several types, pydantic reports an error for each of them: their requirements
    are joined by "or".
    """
    grouped: dict[tuple[str, str], list[Any]] = {}
    lists = {detail["loc"][:-2] for detail in error.errors() if isinstance(detail["loc"][-1], int)}
    for detail in error.errors():
        if detail["loc"][:-1] in lists and not isinstance(detail["loc"][-1], int):
            continue  # "must be text", but a list is right, too, and an item of it is wrong
        location = _locate(detail["loc"])
        grouped.setdefault((".".join(location.path), location.entry), []).append(detail)
    return [Problem((key,), entry + _explain(errors)) for (key, entry), errors in grouped.items()]


def without_wrong_keys(values: dict[str, Any], error: ValidationError) -> dict[str, Any]:
    """A copy of `values` without the wrong keys of `error`: they fall back to their defaults."""
    correct_values = deepcopy(values)
    for detail in error.errors():
        *sections, last = _locate(detail["loc"]).path
        section = correct_values
        for key in sections:
            section = section.get(key, {})
        section.pop(last, None)
    return correct_values


class _Location(NamedTuple):
    """Where an error is: the keys that lead there, the section of the last one, and "entry: "
    inside a list or mapping.
    """

    path: list[str]
    section: type[BaseModel]
    entry: str

    @property
    def types(self) -> list[Any]:
        """The type of the key, and its members if it is a union."""
        field = self.section.model_fields.get(self.path[-1])
        return [] if field is None else [field.annotation, *get_args(field.annotation)]

    @property
    def choices(self) -> list[str]:
        return [
            value for kind in self.types if get_origin(kind) is Literal for value in get_args(kind)
        ]


def _locate(pydantic_location: Sequence[int | str]) -> _Location:
    """pydantic's location without the names of union members, which it adds to the keys."""
    path: list[str] = []
    section: type[BaseModel] = Config
    subsection: type[BaseModel] | None = Config
    parts = map(str, pydantic_location)
    for part in parts:
        section = subsection or section
        path.append(part)
        subsection = section_of(section, part)
        if subsection is None:
            subsection = named_sections_of(section, part)
            name = next(parts, None) if subsection else None
            if name is None:
                break
            path.append(name)
    location, rest = _Location(path, section, ""), pydantic_location[len(path) :]
    containers = [get_origin(kind) for kind in location.types]
    if rest and dict in containers:
        return location._replace(entry=f"{rest[0]}: ")
    indices = [part for part in rest if isinstance(part, int)]
    if indices and list in containers:
        return location._replace(entry=f"item {indices[0] + 1}: ")
    return location


def _explain(errors: Sequence[Any]) -> str:
    first = errors[0]
    location = _locate(first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key; {_suggestion(location)}"
    if first["type"] == "missing":
        return "must be given"
    value = json.dumps(first["input"], ensure_ascii=False)
    value = value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}..."
    if first["type"] == "literal_error":
        similar = get_close_matches(str(first["input"]), location.choices, n=1)
        remedy = f"; did you mean {similar[0]}?" if similar else ""
        return f"{value} is not one of {', '.join(location.choices)}{remedy}"
    if first["type"] == "string_pattern_mismatch":
        return f"must be {PATTERN_TEXTS[first['ctx']['pattern']]}; got {value}"
    needed = " or ".join(_requirement(detail, location) for detail in errors)
    return f"must be {needed}; got {value}"


def _requirement(error: Any, location: _Location) -> str:
    if error["type"] == "literal_error":
        return " or ".join(location.choices)
    if error["type"] in REQUIREMENTS:
        return REQUIREMENTS[error["type"]].format(**error.get("ctx", {}))
    return str(error["msg"]).removeprefix("Input should be ")


def _suggestion(location: _Location) -> str:
    """Keys to suggest: a similar key in the same section, or the same key in another section."""
    known_keys, unknown_key = list(location.section.model_fields), location.path[-1]
    in_other_sections = [key for key in _keys(Config) if key.endswith(f".{unknown_key}")]
    similar = [
        ".".join([*location.path[:-1], key])
        for key in get_close_matches(unknown_key, known_keys, n=1)
    ]
    suggestions = similar or in_other_sections[:3]
    return (
        f"did you mean {' or '.join(suggestions)}?"
        if suggestions
        else f"known keys: {', '.join(known_keys)}"
    )


def _keys(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for key in section.model_fields:
        yield prefix + key
        subsection = section_of(section, key)
        if subsection is not None:
            yield from _keys(subsection, f"{prefix}{key}.")
