"""The YAML of configurations: a few rules of YAML 1.2, and a comment beside each key."""

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from functools import cache
from typing import Any

import yaml
from pydantic import BaseModel

from nmt.config.schema import Config
from nmt.config.section import section_of
from nmt.errors import ConfigError, first_line

# Of a text; a configuration with all its comments has 16,000, 180, 4.
MAX_CHARACTERS, MAX_VALUES, MAX_DEPTH = 1 << 18, 10_000, 50
MAX_DIGITS = 100  # of a whole number
LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def parse(text: str, origin: str) -> Any:
    """The value of a YAML text.

    Args:
        origin: where the text comes from, for the error message.

    Raises:
        ConfigError: the text is not valid YAML, or too large for a configuration.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(
            f"{origin}: longer than {MAX_CHARACTERS:,} characters; this is no configuration"
        )
    try:
        if yaml.__with_libyaml__:
            with suppress(yaml.YAMLError):  # the other loader says better what is wrong
                return yaml.load(text, Loader=_fast_loader())
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError) as error:  # "\U00110000" is no character
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(
            f"{origin}{where}: not valid YAML: {getattr(error, 'problem', '') or first_line(error)}"
        ) from None


def dump(config: Config) -> str:
    """The whole configuration as YAML, with the description of each key as a comment beside it."""
    # An empty line before each section.
    return comment(re.sub(r"^(?=\w+:$)", "\n", to_yaml(config.to_dict()), flags=re.MULTILINE))


def to_yaml(values: dict[str, Any]) -> str:
    """The values as YAML, without comments."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=sys.maxsize)


def comment(text: str) -> str:
    """The YAML `text` of a configuration, with the description of each key beside it.

    An old comment at the end of such a line is replaced. Lines without a known key stay unchanged.

    Raises:
        ConfigError: the text is not valid YAML.
    """
    parse(text, "configuration")
    lines = LINE_BREAK.split(text)
    breaks = [*LINE_BREAK.findall(text), ""]
    descriptions: dict[int, str] = {}
    for line, description in _descriptions(yaml.compose(text, Loader=_Loader), Config):
        # Of several keys on a line, the first (outermost) is described.
        descriptions.setdefault(line, description)
    # A comment starts after the last token of its line: a "#" may also be part of a text.
    widths = {
        token.end_mark.line: token.end_mark.column
        for token in yaml.scan(text, Loader=_Loader)
        if token.end_mark.column
    }
    # On lines of more than 40 characters the comment follows the value directly.
    column = max((widths[line] for line in descriptions if widths[line] <= 40), default=0)
    for line, description in descriptions.items():
        lines[line] = f"{lines[line][: widths[line]]:<{column}}  # {description}"
    return "".join(line + line_break for line, line_break in zip(lines, breaks, strict=True))


def _descriptions(node: yaml.Node | None, section: type[BaseModel]) -> Iterator[tuple[int, str]]:
    """(line from 0, description) of each known key in a composed YAML document."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if key.value not in section.model_fields:
            continue
        # A quoted text may span several lines; a comment can only follow its last line.
        inside_text = isinstance(value, yaml.ScalarNode) and value.style not in ("|", ">")
        yield (
            (value.end_mark if inside_text else key.end_mark).line,
            section.model_fields[key.value].description or "",
        )
        subsection = section_of(section, key.value)
        if subsection is not None:
            yield from _descriptions(value, subsection)


class _Loader(yaml.SafeLoader):
    """Safe YAML, but 1e-4 is a number, `no` and a date are text, a repeated key is an error.

    Its size is limited before anything is built: aliases of aliases make a short text enormous.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = self.n_values = 0
        self.sizes: dict[yaml.Node | None, int] = {}  # values in each complete node

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        before, is_alias = self.n_values, isinstance(event, yaml.AliasEvent)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(
                None, None, f"nested more than {MAX_DEPTH} deep", event.start_mark
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        if is_alias and node not in self.sizes:
            raise yaml.composer.ComposerError(
                None, None, f"the anchor {event.anchor} contains itself", event.start_mark
            )
        self.n_values += self.sizes[node] if is_alias else 1
        self.sizes[node] = self.n_values - before
        if self.n_values > MAX_VALUES:
            raise yaml.composer.ComposerError(
                None, None, f"more than {MAX_VALUES:,} values, with its aliases", event.start_mark
            )
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            if node.tag == "tag:yaml.org,2002:int" and len(node.value) > MAX_DIGITS:
                raise ValueError
            return super().construct_object(node, deep)
        except (LookupError, ValueError):
            raise yaml.constructor.ConstructorError(
                None, None, f"not a valid {node.tag.rpartition(':')[2]}", node.start_mark
            ) from None

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        value = super().construct_scalar(node)
        if re.search("[\ud800-\udfff]", value):
            raise yaml.constructor.ConstructorError(
                None, None, "half of a surrogate pair is not a character", node.start_mark
            )
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        repeated = {str(key) for key in keys if keys.count(key) > 1}
        if repeated:
            raise yaml.constructor.ConstructorError(
                None, None, f"repeated key: {', '.join(sorted(repeated))}", node.start_mark
            )
        return super().construct_mapping(node, deep)


@cache
def _fast_loader() -> type[_Loader]:
    """The same loader, with events of libyaml, which some installations of PyYAML lack. It takes a
    fifth of the time, and reads tabs as white space in more places.
    """
    from yaml.cyaml import CParser  # type: ignore[attr-defined]

    class FastLoader(CParser, _Loader):
        # That of CParser would not call `compose_node`, which has the limits.
        get_single_node = yaml.composer.Composer.get_single_node

        def __init__(self, text: str) -> None:
            _Loader.__init__(self, text)  # first, since it refuses what libyaml cannot encode
            CParser.__init__(self, text)

    return FastLoader


class _Dumper(yaml.SafeDumper):
    """Quotes every text that `_Loader`, or another reader of YAML, would not read as text."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        # Only double quotes can escape a line break, which keeps the whole text on one line.
        style = '"' if LINE_BREAK.search(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)

    def represent_decimal(self, value: float) -> yaml.ScalarNode:
        if 1e-8 <= abs(value) < 1:  # not 1.0e-05; smaller numbers have an exponent
            return self.represent_scalar("tag:yaml.org,2002:float", f"{Decimal(repr(value)):f}")
        return self.represent_float(value)


_FLOAT = re.compile(
    r"^[-+]?(\d[\d_]*\.[\d_]*([eE][-+]?\d+)?|\.\d[\d_]*([eE][-+]?\d+)?|\d[\d_]*[eE][-+]?\d+|\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
)
_KINDS = {
    f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int", "map", "null", "seq", "str")
}
_Loader.yaml_constructors = {
    tag: build
    for tag, build in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag in _KINDS
}
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if not tag.endswith((":bool", ":float", ":timestamp"))
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_representer(float, _Dumper.represent_decimal)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
