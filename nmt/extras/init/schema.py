"""The JSON schema of a configuration, with which editors complete, explain and check its keys."""

from typing import Any

from nmt.commands.options import to_json
from nmt.config.schema import Config

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def command() -> None:
    """The command line."""
    print(to_json(json_schema()))


def json_schema() -> dict[str, Any]:
    """The schema. Rules between keys (nmt/config/rules.py) are not part of it."""
    schema = Config.model_json_schema()
    _tidy(schema)
    return {"$schema": DIALECT, "title": "Configuration of nmt", **schema}


def _tidy(node: Any) -> None:
    """Remove titles, which repeat names, and defaults of sections, which their keys repeat."""
    if isinstance(node, list):
        for item in node:
            _tidy(item)
    elif isinstance(node, dict):
        if isinstance(node.get("title"), str):
            del node["title"]
        if isinstance(node.get("default"), dict):
            del node["default"]
        for item in node.values():
            _tidy(item)
