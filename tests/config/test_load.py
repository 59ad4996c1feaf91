"""Reading configurations from YAML, with overrides and old keys; differences between two."""

import re
from pathlib import Path
from typing import Any

import pytest

from nmt.config.load import (
    LAST_VERSIONS,
    RETIRED,
    config_from_dict,
    differences,
    load_config,
    read_yaml,
)
from nmt.errors import ConfigError
from tests.config.examples import MINIMAL, problems_of, values_with, write

# The text of `MINIMAL`.
SMALL = "name: test\ndata: {source: {path: deu-eng.zip}}\n"

# Reading


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1.0e-4", 1e-4),
        ("1E-4", 1e-4),
        ("1e+0", 1),
        ("1.", 1),
        (".5", 0.5),
        ("0.001", 1e-3),
        ("1_000.5", 1000.5),
    ],
)
def test_ways_to_write_a_number(tmp_path: Path, text: str, value: float) -> None:
    path = write(tmp_path, f"{SMALL}training: {{learning_rate: {{peak: {text}}}}}\n")
    rate = {"learning_rate": {"peak": value}}
    assert load_config(path) == config_from_dict(values_with(training=rate))


def test_no_is_norwegian_and_a_date_is_text(tmp_path: Path) -> None:
    data = "data: {direction: en-no, source: {path: a, columns: {en: 1, no: 2}}}"
    config = load_config(write(tmp_path, f"name: 2026-11-21\n{data}\n"))
    assert config.name == "2026-11-21"
    assert config.data.source.columns == {"en": 1, "no": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\nname: y\n", "x.yaml, line 1, column 1: not valid YAML: repeated key: name"),
        (
            "name: x\ndata:\n  split: {}\n  split: {}\n",
            "x.yaml, line 3, column 3: not valid YAML: repeated key: split",
        ),
        ("name: x\ndata: [1, 2\n", "x.yaml, line 3, column 1: not valid YAML: "),
        (
            "name: x\n  seed: 1\n",
            "x.yaml, line 2, column 7: not valid YAML: mapping values are not allowed here",
        ),
        ("name: 'x\n", "x.yaml, line 2, column 1: not valid YAML: found unexpected end of stream"),
        (
            "name: !!python/object:os.system x\n",
            "x.yaml, line 1, column 7: not valid YAML: could not determine a constructor",
        ),
        ("name: \x00\n", "x.yaml: not valid YAML: "),
        (
            'name: x\nseed: "\\ud800"\n',
            "x.yaml, line 2, column 7: not valid YAML: half of a surrogate pair is not a character",
        ),
        ("", "x.yaml: expected `key: value` lines, found nothing"),
        ("- name\n", "x.yaml: expected `key: value` lines, found a list"),
        ("name\n", "x.yaml: expected `key: value` lines, found text"),
        ("? [a, b]\n: 1\n", "x.yaml, line 1, column 3: not valid YAML: found unhashable key"),
    ],
    ids=repr,
)
def test_not_a_configuration(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


def test_an_endless_file_is_not_read_whole() -> None:
    with pytest.raises(
        ConfigError, match=r"^/dev/zero: longer than 262,144 characters; this is no configuration$"
    ):
        read_yaml(Path("/dev/zero"))


def test_a_message_shows_only_the_beginning_of_a_long_value(tmp_path: Path) -> None:
    path = write(tmp_path, f"{SMALL}seed: [{'abcdefgh, ' * 1000}]\n")
    with pytest.raises(
        ConfigError, match=r"seed: must be a whole number; got \[\"abcdefgh\", .+\.\.\.$"
    ) as caught:
        load_config(path)
    assert len(str(caught.value)) < 300


# Overrides


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("training.epochs=3", "training.epochs", 3),
        ("training.learning_rate.peak=1e-4", "training.learning_rate.peak", 1e-4),
        ("data.source.path=../a=b.zip", "data.source.path", "../a=b.zip"),
        ("data.source.columns={en: 2, de: 3}", "data.source.columns.de", 3),
        ("tokenizer.lowercase=true", "tokenizer.lowercase", True),
        ("training.epochs=2 training.epochs=3", "training.epochs", 3),
        ("training.max_steps=", "training.max_steps", None),
        (" seed = 7 ", "seed", 7),
    ],
)
def test_override(tmp_path: Path, override: str, key: str, value: Any) -> None:
    path = write(tmp_path, f"{SMALL}training: {{epochs: 9, max_steps: 9}}\n")
    found: Any = load_config(path, re.split(" (?=training)", override)).to_dict()
    for part in key.split("."):
        found = found[part]
    assert found == value


def test_the_message_names_the_override_that_causes_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL)
    with pytest.raises(ConfigError) as caught:
        load_config(path, ["seed=2", "decoding.bem=3"])
    assert str(caught.value).startswith(
        f"{path} with --set seed=2 --set decoding.bem=3: decoding.bem: unknown key"
    )
    write(tmp_path, f"{SMALL}sead: 3\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path, ["seed=2"])
    assert str(caught.value).startswith(f"{path}: sead: unknown key")
    write(tmp_path, f"{SMALL}seed: many\n")
    assert load_config(path, ["seed=2"]).seed == 2  # the override replaces the wrong value


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "training.epochs",
            "--set training.epochs: write key=value, for example --set training.epochs=3",
        ),
        ("=3", "--set =3: write key=value, for example --set training.epochs=3"),
        ("a\udc8b=3", r"--set a\udc8b=3: a key has no control characters"),
        ("se\ned=3", r"--set se\ned=3: a key has no control characters"),
        ("seed=[1", "--set seed=[1, line 1, column 3: not valid YAML: "),
        (
            "trainin.epochs=3",
            "{path} with --set trainin.epochs=3: trainin: unknown key; did you mean training?",
        ),
        (
            "training..epochs=3",
            "{path} with --set training..epochs=3: training.: unknown key; known keys: start_from",
        ),
        ("seed.x=3", '{path} with --set seed.x=3: seed: must be a whole number; got {"x": 3}'),
        ("seed=x", '{path} with --set seed=x: seed: must be a whole number; got "x"'),
    ],
)
def test_invalid_override(tmp_path: Path, override: str, message: str) -> None:
    path = write(tmp_path, SMALL)
    with pytest.raises(ConfigError) as caught:
        load_config(path, [override])
    assert str(caught.value).startswith(message.replace("{path}", str(path)))


# Writing


def test_differences_by_dotted_key() -> None:
    other = config_from_dict(
        values_with(seed=2, training={"batch": {"size": 32}}, tokenizer={"lowercase": True})
    )
    assert differences(MINIMAL, other) == {
        "seed": (1, 2),
        "tokenizer.lowercase": (False, True),
        "training.batch.size": (64, 32),
    }
    assert differences(other, other) == {}


def test_differences_where_a_section_is_missing_in_one() -> None:
    given_sets = {"source": {"path": "deu-eng.zip"}, "dev": {"path": "b"}, "test": {"path": "c"}}
    found = differences(MINIMAL, config_from_dict(values_with(data=given_sets)))
    assert found["data.dev.path"] == (None, "b")
    assert found["data.test.path"] == (None, "c")


# Keys and values that have left nmt


def values_of(key: str, value: Any) -> dict[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    (section, content), *_ = value.items()
    return values_with(**{section: content})


@pytest.mark.parametrize("key", RETIRED)
def test_what_is_off_is_ignored(key: str) -> None:
    for value in RETIRED[key] or ("anything",):
        assert config_from_dict(values_of(key, value)) == MINIMAL


@pytest.mark.parametrize("key", [key for key, off in RETIRED.items() if off])
def test_what_is_on_is_named(key: str) -> None:
    last = LAST_VERSIONS.get(key, "0.1")
    (problem,) = problems_of(values_of(key, 5))
    assert problem.startswith(f"{key}: left nmt after {last}, and is now always ")
    assert problem.endswith(f"; remove it, or use nmt {last} for this run")


def test_word_vectors_left() -> None:
    assert problems_of(values_with(model={"tgt_vectors": "wiki.vec"})) == [
        "model.tgt_vectors: left nmt after 0.2, and is now always null; remove it, or use nmt 0.2 "
        "for this run"
    ]


def test_all_problems_are_named_at_once() -> None:
    values = values_with(training={"r_drop": 5, "epochs": 0})
    assert problems_of(values) == [
        "training.r_drop: left nmt after 0.1, and is now always 0; remove it, or use nmt 0.1 for "
        "this run",
        "training.epochs: must be at least 1; got 0",
    ]
