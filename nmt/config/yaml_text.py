"""The YAML of configurations: as version 1.2 has it where that matters, with a comment beside each key."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import BaseModel

from nmt.config.explain import section_of
from nmt.errors import ConfigError

COMMENT_COLUMN_MAX = 40
LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def parse(text: str, origin: str) -> Any:
    """The value of a YAML text.

    Raises:
        ConfigError: it is not valid YAML; `origin` says where it comes from.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{origin}{where}: not valid YAML: {getattr(error, 'problem', None) or error}") from None


def write(values: dict[str, Any], root: type[BaseModel]) -> str:
    """YAML of a configuration's values, sections apart, each key with its description in `root` beside it."""
    text = yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=sys.maxsize)
    sections_apart = re.sub(r"^(?=\w+:$)", "\n", text, flags=re.MULTILINE)
    return comment(sections_apart, root)


def comment(text: str, root: type[BaseModel]) -> str:
    """The YAML `text` with each key's description as the comment at the end of its line, in place of any that stands there.

    Lines that hold no key of the configuration stay as they are.

    Raises:
        ConfigError: `text` is not valid YAML.
    """
    parse(text, "configuration")
    lines = LINE_BREAK.split(text)
    breaks = [*LINE_BREAK.findall(text), ""]
    descriptions: dict[int, str] = {}
    for line, description in _descriptions(yaml.compose(text, Loader=_Loader), root):
        descriptions.setdefault(line, description)  # of several keys in a line the outermost is described
    # A comment begins after the last token of its line, wherever a "#" may stand before that.
    widths = {token.end_mark.line: token.end_mark.column for token in yaml.scan(text, Loader=_Loader) if token.end_mark.column}
    column = max((widths[line] for line in descriptions if widths[line] <= COMMENT_COLUMN_MAX), default=0) + 2
    for line, description in descriptions.items():
        lines[line] = f"{lines[line][: widths[line]]:<{column - 2}}  # {description}"
    return "".join(line + line_break for line, line_break in zip(lines, breaks, strict=True))


def _descriptions(node: yaml.Node | None, section: type[BaseModel]) -> Iterator[tuple[int, str]]:
    """(line from 0, description) of each known key in a composed YAML document."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if key.value not in section.model_fields:
            continue
        # A quoted text may go over several lines, and takes a comment only after its last.
        inside_text = isinstance(value, yaml.ScalarNode) and value.style not in ("|", ">")
        yield (value.end_mark if inside_text else key.end_mark).line, section.model_fields[key.value].description or ""
        below = section_of(section, key.value)
        if below is not None:
            yield from _descriptions(value, below)


class _Loader(yaml.SafeLoader):
    """YAML, but 1e-4 is a number and `no` is text (as in YAML 1.2), a date is text, and a key given twice is a fault."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {str(key) for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"given twice: {', '.join(sorted(twice))}", node.start_mark)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes whatever `_Loader`, or another reader, would not take for text."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        # Only between double quotes is a line break an escape, so that all of a text stays on its line.
        style = '"' if LINE_BREAK.search(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


_FLOAT = re.compile(
    r"^[-+]?(\d[\d_]*\.[\d_]*([eE][-+]?\d+)?|\.\d[\d_]*([eE][-+]?\d+)?|\d[\d_]*[eE][-+]?\d+|\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
)
_BOOL = re.compile(r"^(true|True|TRUE|false|False|FALSE)$")
_REPLACED = {f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "timestamp")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOL, list("tTfF"))
_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
