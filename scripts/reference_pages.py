"""The pages of the documentation that are made from the code: every configuration key, every
option, every error with a remedy.

`make docs` makes these pages again each time, so they agree with the code.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nmt import errors
from nmt.cli import all_commands, app
from nmt.config.schema import PATTERN_TEXTS, Config
from nmt.config.section import named_sections_of, section_of
from nmt.texts.warnings import DESCRIPTIONS

PACKAGE = Path(__file__).resolve().parent.parent / "nmt"
TYPES = {
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    str: "text",
    Path: "path",
    NoneType: "",
}
BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
GAP = "…"  # in a message, where it names a file, a key or a number
ERROR_NAMES = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.NmtError)
}

# The parts of nmt whose messages are listed together, with a heading for each.
PARTS = {
    "The configuration": "config/*.py",
    "Reading and preparing data": "text/*.py data/*.py files.py lines.py extras/formats/*.py",
    "Training": "training/*.py model/*.py device.py extras/tensorboard/*.py",
    "Runs and checkpoints": "run/*.py extras/runs/*.py extras/share/*.py",
    "Translating": "decoding/*.py extras/neighbors/*.py extras/ranking/*.py "
    "extras/corpus/*.py extras/export/*.py",
    "Evaluating": "evaluation/*.py report/*.py extras/analysis/*.py",
    "The web page and the API": "extras/serve/*.py",
    "Other commands and options": "commands/*.py cli.py plugins.py extras/augment/*.py "
    "extras/init/*.py",
}


def configuration() -> str:
    """The page of all configuration keys."""
    return "\n".join(
        [
            "# Configuration keys\n\n"
            "Every key, its type, its default and its meaning. This page is made from the code, so "
            "it is complete and current.\n\n"
            "A configuration is a YAML file. Only `name` and the place of the data must be given; "
            "every other key has a default. "
            "`--set` changes a key for one command: `--set training.epochs=3`. The file "
            "`config.yaml` in a run folder lists all keys "
            "with their values. nmt refuses unknown keys, wrong types and combinations that cannot "
            "work, and names the keys.\n",
            *_sections(Config, ""),
        ]
    )


def _sections(section: type[BaseModel], prefix: str) -> Iterator[str]:
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for key, field in section.model_fields.items():
        subsection, name = _section_below(section, key), prefix + key
        anchor = f"`{key}`{{ #{name} }}"
        if subsection is None:
            yield (
                f"| {anchor} | {_type_text(field)} | {_default_text(field)} | "
                f"{_cell(field.description)} |"
            )
        else:
            target = "data.source" if name in ("data.dev", "data.test") else name
            yield f"| {anchor} | [section](#section-{target}) | | {_cell(field.description)} |"
    for key in section.model_fields:
        subsection, name = _section_below(section, key), prefix + key
        if subsection is not None and name not in ("data.dev", "data.test"):
            yield f"\n{'#' * (name.count('.') + 2)} `{name}` {{ #section-{name} }}\n"
            yield from _sections(subsection, f"{name}.")


def _section_below(section: type[BaseModel], key: str) -> type[BaseModel] | None:
    """The section under `key`, or that of each name under it."""
    return section_of(section, key) or named_sections_of(section, key)


def _type_text(field: FieldInfo) -> str:
    bounds = [
        f"{word} {getattr(each, name):g}"
        for each in field.metadata
        for name, word in BOUNDS.items()
        if hasattr(each, name)
    ]
    patterns = [
        PATTERN_TEXTS[each.pattern] for each in field.metadata if getattr(each, "pattern", None)
    ]
    return _cell(", ".join(patterns or [_annotation_text(field.annotation), *bounds]))


def _annotation_text(annotation: Any) -> str:
    origin, members = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in members)
    if origin in (Union, UnionType):
        return " or ".join(text for text in map(_annotation_text, members) if text)
    if origin is list:
        return "list"
    if origin is dict:
        return f"one {_annotation_text(members[1])} per language"
    if hasattr(annotation, "__metadata__"):
        return _annotation_text(members[0])
    return TYPES[annotation]


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    is_word = field.default is None or isinstance(field.default, bool)
    return f"`{json.dumps(field.default) if is_word else field.default}`"


def commands() -> str:
    """The page of all commands and options."""
    introduction = (
        "# Commands and options\n\n"
        "Every command with all its options. This page is made from the code, so it is complete "
        "and current. "
        "`nmt COMMAND --help` prints the same in the terminal.\n\n"
        "Results go to stdout; messages, warnings and progress go to stderr. The exit status is "
        "0 for success, 1 for an error that "
        "you can fix or a required score that was not reached, 2 for wrong options, and 130 "
        "after Ctrl-C.\n"
    )
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="nmt")
    names = [name for name, row in all_commands().items() if row.place]
    parts = [_command(name, group.get_command(context, name), context) for name in names]
    return "\n".join([introduction, *parts])


def _command(name: str, command: Any, parent: Any) -> str:
    context = typer.Context(command, info_name=name, parent=parent)
    records = filter(None, (each.get_help_record(context) for each in command.params))
    rows = [f"| `{_escaped(names)}` | {_cell(meaning)} |" for names, meaning in records]
    table = ["| option | meaning |", "|---|---|", *rows, ""] if rows else []
    heading = f"## `nmt {name}` {{ #nmt-{name.replace(' ', '-')} }}"
    return "\n".join(
        [
            heading,
            "",
            _cell(command.help),
            "",
            f"```\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n",
            *table,
        ]
    )


def error_messages() -> str:
    """The page of all error messages that say what to do."""
    introduction = (
        "# Error messages and remedies\n\n"
        "Every error message of nmt that says what to do. Where a message names a file, a key or "
        f"a number, `{GAP}` stands here. "
        "This page is made from the code, so it is complete and current.\n\n"
        "An error is one line on stderr that starts with `nmt:`. It does not destroy anything: "
        "earlier checkpoints, prepared "
        "folders and outputs stay as they were.\n"
    )
    lines, constants = [introduction], _text_constants()
    for heading, patterns in PARTS.items():
        paths = [path for pattern in patterns.split() for path in sorted(PACKAGE.glob(pattern))]
        found = [messages_of(path.read_text(encoding="utf-8"), constants) for path in paths]
        messages = dict.fromkeys(text for texts in found for text in texts)
        rows = [text.partition("; ") for text in messages if re.search(r"\w.*; .*\w", text)]
        if rows:
            lines += [f"## {heading}\n", "| message | what to do |", "|---|---|"]
            lines += [f"| {_cell(what)} | {_cell(remedy)} |" for what, _, remedy in sorted(rows)]
            lines.append("")
    lines += [
        "## Warnings about translations\n",
        "`nmt translate` prints these on stderr, once for each kind, with the line numbers.\n",
    ]
    lines += ["| warning | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(description)} |" for name, description in DESCRIPTIONS.items()]
    return "\n".join([*lines, ""])


def _text_constants() -> dict[str, str]:
    """The texts that modules of nmt give a name to."""
    assignments = (
        node
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
    )
    return {
        target.id: node.value.value
        for node in assignments
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def messages_of(source: str, constants: Mapping[str, str]) -> Iterator[str]:
    """The texts of the errors and the configuration problems that a module can make, with `GAP` for
    the values in them.

    Args:
        constants: the values of names that may occur in the texts.
    """
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        yield from _refused_options(function, constants)
        assigned: dict[str, str | None] = {}
        for node in sorted(
            (each for each in ast.walk(function) if isinstance(each, ast.Assign | ast.Call)),
            key=lambda each: each.lineno,
        ):
            if isinstance(node, ast.Assign):
                assigned |= {
                    target.id: _text_of(node.value, constants)
                    for target in node.targets
                    if isinstance(target, ast.Name)
                }
                continue
            name = (
                node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            )
            if name in ERROR_NAMES | {"BadParameter"} and node.args:
                argument, prefix = node.args[0], ""
            elif name == "Problem" and len(node.args) == 2:
                argument, prefix = node.args[1], f"{_keys_text(node.args[0], constants)}: "
            else:
                continue
            text = (
                assigned.get(argument.id)
                if isinstance(argument, ast.Name)
                else _text_of(argument, constants)
            )
            if text:
                yield prefix + text


def _refused_options(function: ast.FunctionDef, constants: Mapping[str, str]) -> Iterator[str]:
    """The texts in the tables of a function `check`, or of a call of it: options that do not go
    together.
    """
    for node in ast.walk(function):
        tables: list[ast.expr] = []
        if isinstance(node, ast.Assign) and function.name == "check":
            tables = [node.value]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "check":
            tables = node.args
        keys = [key for table in tables if isinstance(table, ast.Dict) for key in table.keys]
        yield from filter(None, (_text_of(key, constants) for key in keys if key is not None))


def _keys_text(node: ast.expr, constants: Mapping[str, str]) -> str:
    keys = node.elts if isinstance(node, ast.Tuple) else [node]
    return ", ".join(_text_of(key, constants) or GAP for key in keys)


def _text_of(node: ast.expr, constants: Mapping[str, str]) -> str | None:
    """The text of a string or f-string in the code, with `GAP` for values that are not constants;
    None for other expressions.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value)
            if isinstance(part, ast.Constant)
            else constants.get(ast.unparse(part)[1:-1], GAP)
            for part in node.values
        )
    return None


def _cell(text: str | None) -> str:
    """Plain text for a cell of a Markdown table; words between backticks stay code."""
    parts = re.split(r"(`[^`]+`)", " ".join((text or "").split()).replace("<", "&lt;"))
    parts[::2] = [re.sub(r"([\\*_\[\]])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [part.replace("&lt;", "<") for part in parts[1::2]]
    return _escaped("".join(parts))


def _escaped(text: str) -> str:
    return text.replace("|", r"\|")


PAGES: dict[str, Callable[[], str]] = {
    "configuration": configuration,
    "commands": commands,
    "errors": error_messages,
}
