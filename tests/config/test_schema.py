"""The configuration: what is accepted, its defaults, its descriptions, and the tables of parts."""

from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from nmt.cli import all_commands
from nmt.config import parts
from nmt.config.load import config_from_dict
from nmt.config.section import Section
from nmt.plugins import Part, extras, import_object
from tests.config.examples import MINIMAL, SECTIONS, values_with


def test_defaults_are_enough() -> None:
    assert MINIMAL.model.encoder.hidden_size == 256
    assert MINIMAL.prepared_folder == Path("data/prepared/test")
    assert MINIMAL.run_folder == Path("runs/test")
    assert (MINIMAL.data.src_language, MINIMAL.data.tgt_language) == ("en", "de")


def test_values_that_follow_from_keys() -> None:
    data = {"prepared": "elsewhere", "source": {"path": "a"}}
    model = {"encoder": {"bidirectional": False}, "dropout": 0}
    config = config_from_dict(values_with(data=data, model=model))
    assert config.prepared_folder == Path("elsewhere")
    assert config.model.dropout == 0
    sizes = [each.model.encoder.output_size for each in (config, MINIMAL)]
    assert sizes == [256, 512], "two directions are concatenated"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_section_is_strict_and_describes_every_key_and_choice(
    section: type[BaseModel],
) -> None:
    assert issubclass(section, Section)
    for key, field in section.model_fields.items():
        assert field.description, f"{section.__name__}.{key} has no description"
        assert "\n" not in field.description
        assert field.description == field.description.strip()
        for kind in (field.annotation, *get_args(field.annotation)):
            if get_origin(kind) is Literal:
                assert all(choice in field.description for choice in get_args(kind))


# Every row of every table names something that exists

TABLES = [table for table in vars(parts).values() if isinstance(table, dict)]
ROWS = [row for table in TABLES for row in table.values() if isinstance(row, Part)]
FIELDS = ("rules", "wrap", "rank", "memory", "archive", "listener")
PLACES = [row.place for row in ROWS]
PLACES += [row.place for row in all_commands().values()]
for extra in extras().values():
    PLACES += [*extra.keys.values(), *extra.files.values()]
    PLACES += [getattr(extra, name) for name in FIELDS]


@pytest.mark.parametrize("place", dict.fromkeys(filter(None, PLACES)))
def test_a_place_exists(place: str) -> None:
    assert callable(import_object(place))
