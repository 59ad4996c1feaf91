"""The configurations that come with nmt."""

import json
import re
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from nmt.config import yaml_text
from nmt.config.load import config_from_dict, load_config
from nmt.config.yaml_text import comment, dump
from nmt.extras.init.command import json_schema

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "configs" / "schema.json"
VALIDATOR = Draft202012Validator(json_schema())
PATHS = sorted((ROOT / "configs").rglob("*.yaml"))

each_config = pytest.mark.parametrize(
    "path", PATHS, ids=lambda path: path.relative_to(ROOT / "configs").as_posix()
)


@each_config
def test_loads_and_round_trips(path: Path, tmp_path: Path) -> None:
    config = load_config(path)
    assert config.name == path.stem
    copy = tmp_path / "config.yaml"
    copy.write_text(dump(config), encoding="utf-8")
    assert load_config(copy) == config
    assert config_from_dict(config.to_dict()) == config


@each_config
def test_every_key_has_its_description_beside_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    wanted = comment(text)
    difference = "\n".join(
        unified_diff(
            text.splitlines(),
            wanted.splitlines(),
            "as it is",
            "as nmt/config/schema.py has it",
            lineterm="",
            n=0,
        )
    )
    assert text == wanted, f"{path.name}: run scripts/comment_configs.py\n{difference}"


def test_the_schema_for_editors_is_up_to_date() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == json_schema(), (
        "run scripts/comment_configs.py"
    )


@each_config
def test_editors_find_the_schema_and_accept_the_configuration(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    match = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert match
    assert (path.parent / match[1]).resolve() == SCHEMA
    VALIDATOR.validate(yaml_text.parse(text, path.name))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{name: x, sed: 1}",
        "{name: x, data: {direction: english}}",
        "{name: x, decoding: {beam: 0}}",
        "{name: x, model: {attention: {score: dotted}}}",
    ],
)
def test_editors_refuse_a_wrong_configuration(text: str) -> None:
    assert not VALIDATOR.is_valid(yaml_text.parse(text, "text"))


def test_the_schema_explains_and_constrains_each_key() -> None:
    value = json_schema()
    Draft202012Validator.check_schema(value)
    sections = [value, *value["$defs"].values()]
    assert all(
        "description" in key and "title" not in key
        for section in sections
        for key in section["properties"].values()
    )


def test_models_of_both_directions_have_the_same_data() -> None:
    names = ("", "-de-en", "-large", "-luong")
    configs = [load_config(ROOT / "configs" / f"tatoeba{name}.yaml") for name in names]
    forward, backward, *_ = configs
    assert backward.data.direction == forward.data.opposite_direction
    assert backward.data.split.direction == forward.data.direction
    kept: Any = {"source": True, "cleaning": True, "max_pairs": True, "split": {"seed", "test"}}
    data = [config.data.model_dump(include=kept) for config in configs]
    assert data == data[:1] * len(configs)
    assert (forward.model, forward.tokenizer) == (backward.model, backward.tokenizer)
    length = {key: getattr(forward.training, key) for key in ("max_steps", "validate_every")}
    assert forward.training == backward.training.model_copy(update=length)
