"""The configuration: what is accepted, its defaults and its descriptions."""

from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from nmt.config.load import config_from_dict
from nmt.config.section import Section
from tests.config.examples import MINIMAL, SECTIONS, values_with


def test_defaults_are_enough() -> None:
    assert MINIMAL.model.encoder.hidden_size == 256
    assert MINIMAL.prepared_folder == Path("data/prepared/test")
    assert MINIMAL.run_folder == Path("runs/test")
    assert (MINIMAL.data.src_language, MINIMAL.data.tgt_language) == ("en", "de")


def test_prepared_folder_can_be_named() -> None:
    config = config_from_dict(values_with(data={"prepared": "elsewhere", "source": {"path": "a"}}))
    assert config.prepared_folder == Path("elsewhere")


@pytest.mark.parametrize(("bidirectional", "size"), [(True, 512), (False, 256)])
def test_two_directions_are_concatenated(bidirectional: bool, size: int) -> None:
    config = config_from_dict(values_with(model={"encoder": {"bidirectional": bidirectional}}))
    assert config.model.encoder.output_size == size


def test_a_float_key_accepts_a_whole_number() -> None:
    assert config_from_dict(values_with(model={"dropout": 0})).model.dropout == 0


def test_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        MINIMAL.seed = 2  # type: ignore[misc]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_section_is_strict_and_describes_every_key(section: type[BaseModel]) -> None:
    assert issubclass(section, Section)
    for key, field in section.model_fields.items():
        assert field.description, f"{section.__name__}.{key} has no description"
        assert "\n" not in field.description
        assert field.description == field.description.strip()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_descriptions_name_every_choice(section: type[BaseModel]) -> None:
    for field in section.model_fields.values():
        for kind in (field.annotation, *get_args(field.annotation)):
            if get_origin(kind) is Literal:
                assert [
                    choice for choice in get_args(kind) if choice not in (field.description or "")
                ] == []
