"""Reading configurations from YAML, with overrides; differences between configurations."""

from pathlib import Path
from typing import Any

import pytest

from nmt.config.load import config_from_dict, differences, load_config, read_yaml
from nmt.errors import ConfigError
from tests.config.examples import MINIMAL, values_with, write

# Reading


def test_read_from_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, "name: test\ndata: {source: {path: deu-eng.zip}}\n")
    assert load_config(path) == MINIMAL


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
    path = write(
        tmp_path,
        f"name: x\ndata: {{source: {{path: a}}}}\ntraining:\n  learning_rate:\n    peak: {text}\n",
    )
    assert load_config(path).training.learning_rate.peak == value


def test_no_is_norwegian_and_not_false(tmp_path: Path) -> None:
    path = write(
        tmp_path, "name: x\ndata: {direction: en-no, source: {path: a, columns: {en: 1, no: 2}}}\n"
    )
    assert load_config(path).data.source.columns == {"en": 1, "no": 2}


def test_a_date_is_text(tmp_path: Path) -> None:
    assert (
        load_config(write(tmp_path, "name: 2026-11-21\ndata: {source: {path: a}}\n")).name
        == "2026-11-21"
    )


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"nowhere\.yaml: no such file; the configurations that come with nmt are in configs/$",
    ):
        load_config(tmp_path / "nowhere.yaml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        load_config(tmp_path)


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes("name: Bär".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"x\.yaml: cannot be read as UTF-8 text"):
        load_config(path)


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
    path = write(
        tmp_path, f"name: x\ndata: {{source: {{path: a}}}}\nseed: [{'abcdefgh, ' * 1000}]\n"
    )
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
        ("training.max_steps=", "training.max_steps", None),
        (" seed = 7 ", "seed", 7),
    ],
)
def test_override(tmp_path: Path, override: str, key: str, value: Any) -> None:
    path = write(
        tmp_path,
        "name: test\ndata: {source: {path: deu-eng.zip}}\ntraining: {epochs: 9, max_steps: 9}\n",
    )
    found: Any = load_config(path, [override]).to_dict()
    for part in key.split("."):
        found = found[part]
    assert found == value


def test_the_last_override_counts(tmp_path: Path) -> None:
    path = write(tmp_path, "name: test\ndata: {source: {path: a}}\n")
    assert load_config(path, ["seed=2", "seed=3"]).seed == 3


def test_the_message_names_the_override_that_causes_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path, "name: test\ndata: {source: {path: a}}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path, ["seed=2", "decoding.bem=3"])
    assert str(caught.value).startswith(
        f"{path} with --set seed=2 --set decoding.bem=3: decoding.bem: unknown key"
    )
    write(tmp_path, "name: test\nsead: 3\ndata: {source: {path: a}}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path, ["seed=2"])
    assert str(caught.value).startswith(f"{path}: sead: unknown key")
    write(tmp_path, "name: test\nseed: many\ndata: {source: {path: a}}\n")
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
    path = write(tmp_path, "name: test\ndata: {source: {path: a}}\n")
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


def test_an_override_of_a_key_nested_too_deep() -> None:
    text = r"^--set a\.a\.a\.\.\.: nested more than 50 deep; there is no such key$"
    with pytest.raises(ConfigError, match=text):
        load_config(MINIMAL, [f"{'.'.join('a' * 2000)}=1"])
