"""What pydantic found wrong with a configuration, told to the person who wrote it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError


def section_of(parent: type[BaseModel], key: str) -> type[BaseModel] | None:
    """The section under `key` of `parent`; None if that is a plain value or no key at all."""
    annotation: Any = parent.model_fields[key].annotation if key in parent.model_fields else None
    choices = [annotation, *getattr(annotation, "__args__", ())]
    return next((choice for choice in choices if isinstance(choice, type) and issubclass(choice, BaseModel)), None)


def key_of(fault: Any) -> str:
    """The dotted key of a fault; pydantic adds the member of a union that was tried, which is no key."""
    path = [str(part) for part in path_of(fault)]
    return ".".join(path[:-1] if path[-1] in ("int", "str") and path[-3:-2] == ["columns"] else path)


def path_of(fault: Any) -> list[Any]:
    """The keys that lead to a fault, without the member of a union that was tried where its name could be no key."""
    return [part for part in fault["loc"] if not str(part).startswith(("constrained-", "literal["))]


def describe(error: ValidationError, root: type[BaseModel], patterns: Mapping[str, str]) -> list[str]:
    """A line for each faulty key; where every member of a union was tried, what they want is joined by "or".

    Args:
        root: the whole configuration, to find the keys that an unknown one may have meant.
        patterns: regular expression -> what it asks for, in words.
    """
    lines: dict[str, str] = {}
    for fault in error.errors():
        key, wanted = key_of(fault), _wanted(fault, patterns)
        if key in lines:
            lines[key] += f" or {wanted.removeprefix('input should be ')}"
        else:
            lines[key] = f"{key}: {_describe(fault, root, wanted)}"
    return list(lines.values())


def prune(values: dict[str, Any], path: Sequence[Any]) -> None:
    """Take the value at `path` away, if there is one."""
    here: Any = values
    for key in path[:-1]:
        if not isinstance(here, dict) or key not in here:
            return
        here = here[key]
    if isinstance(here, dict):
        here.pop(path[-1], None)


def listing(origin: str, faults: Sequence[str]) -> str:
    """One message of all faults."""
    if len(faults) == 1:
        return f"{origin}: {faults[0]}"
    return "\n  ".join([f"{origin}: {len(faults)} faults", *faults])


def _describe(fault: Any, root: type[BaseModel], wanted: str) -> str:
    kind = fault["type"]
    if kind == "extra_forbidden":
        return f"no such key; {_suggestion(root, fault['loc'])}"
    if kind == "missing":
        return "must be given"
    value = json.dumps(fault["input"], ensure_ascii=False, default=str)
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", fault["ctx"]["expected"])
        near = get_close_matches(str(fault["input"]), allowed, n=1)
        return f"{value} is not one of {', '.join(allowed)}" + (f"; did you mean {near[0]}?" if near else "")
    return f"{value} is wrong: {wanted}"


def _wanted(fault: Any, patterns: Mapping[str, str]) -> str:
    if fault["type"] == "string_pattern_mismatch":
        return patterns[fault["ctx"]["pattern"]]
    message: str = fault["msg"]
    return message[0].lower() + message[1:].replace("an object", "a section (keys and values)")


def _suggestion(root: type[BaseModel], path: Sequence[Any]) -> str:
    """What may have been meant by the unknown key at `path`: a like one in its section, or the same one in another."""
    section = root
    for key in path[:-1]:
        section = section_of(section, str(key)) or section
    known, unknown = list(section.model_fields), str(path[-1])
    elsewhere = [key for key in _keys(root) if key.endswith(f".{unknown}")]
    near = get_close_matches(unknown, known, n=1, cutoff=0.6) or elsewhere[:3]
    return f"did you mean {' or '.join(near)}?" if near else f"known here: {', '.join(known)}"


def _keys(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """All dotted keys below `section`."""
    for key in section.model_fields:
        yield prefix + key
        below = section_of(section, key)
        if below is not None:
            yield from _keys(below, f"{prefix}{key}.")
