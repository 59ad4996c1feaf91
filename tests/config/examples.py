"""Small configurations, and the problems of wrong ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from nmt.config.load import config_from_dict
from nmt.config.schema import Config
from nmt.errors import ConfigError

Values = dict[str, Any]


def values_with(**sections: Any) -> Values:
    """The smallest configuration, with `sections` added or replaced."""
    return {"name": "test", "data": {"source": {"path": "deu-eng.zip"}}, **sections}


MINIMAL = config_from_dict(values_with())


def sections(section: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield section
    for field in section.model_fields.values():
        for choice in (field.annotation, *get_args(field.annotation)):
            if isinstance(choice, type) and issubclass(choice, BaseModel):
                yield from sections(choice)


SECTIONS = list(dict.fromkeys(sections(Config)))


def problems_of(values: Values) -> list[str]:
    """The problems of the invalid configuration `values`, without the origin."""
    with pytest.raises(ConfigError) as caught:
        config_from_dict(values, "x.yaml")
    first, *others = str(caught.value).split("\n  ")
    if others:
        assert first == f"x.yaml: {len(others)} problems"
        return others
    assert first.startswith("x.yaml: ")
    return [first.removeprefix("x.yaml: ")]


def write(folder: Path, text: str) -> Path:
    path = folder / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return path
