"""Reading configurations from YAML, with overrides and old keys; differences between two."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.load import (
    ADVICE,
    LAST_VERSIONS,
    RETIRED,
    config_from_dict,
    differences,
    load_config,
    read_yaml,
)
from nmt.config.schema import Config
from nmt.errors import ConfigError
from tests.config.examples import MINIMAL, SECTIONS, Values, problems_of, values_with, write

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


def test_an_override_replaces_a_wrong_value(tmp_path: Path) -> None:
    path = write(tmp_path, f"{SMALL}seed: many\n")
    assert load_config(path, ["seed=2"]).seed == 2


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
        (
            f"{'.'.join('a' * 2000)}=1",
            "--set a.a.a...: nested more than 50 deep; there is no such key",
        ),
        ("seed=[1", "--set seed=[1, line 1, column 3: not valid YAML: "),
        (
            "trainin.epochs=3",
            "{path} with --set: trainin: unknown key; did you mean training?",
        ),
        (
            "training..epochs=3",
            "{path} with --set: training.: unknown key; known keys: start_from",
        ),
        ("seed.x=3", '{path} with --set: seed: must be a whole number; got {"x": 3}'),
        ("seed=x", '{path} with --set: seed: must be a whole number; got "x"'),
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
    advice = ADVICE.get(key, f"use nmt {last} for this run")
    assert problem.endswith(f"; remove it, or {advice}")


# The problems of wrong configurations, in words


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"trainin": {}}, "trainin: unknown key; did you mean training?"),
        ({"model": {"enc": {}}}, "model.enc: unknown key; did you mean model.encoder?"),
        (
            {"model": {"encoder": {"hiden_size": 3}}},
            "model.encoder.hiden_size: unknown key; did you mean model.encoder.hidden_size?",
        ),
        (
            {"model": {"decoder": {"zzz": 3}}},
            "model.decoder.zzz: unknown key; known keys: kind, cell, hidden_size, layers, ",
        ),
        ({"epochs": 3}, "epochs: unknown key; did you mean training.epochs?"),
        (
            {"bidirectional": True},
            "bidirectional: unknown key; did you mean model.encoder.bidirectional?",
        ),
        (
            {"cell": "gru"},
            "cell: unknown key; did you mean model.encoder.cell or model.decoder.cell?",
        ),
        ({"training": {"epochs": "3"}}, 'training.epochs: must be a whole number; got "3"'),
        ({"training": {"epochs": 2.5}}, "training.epochs: must be a whole number; got 2.5"),
        ({"training": {"epochs": True}}, "training.epochs: must be a whole number; got true"),
        ({"training": {"epochs": 0}}, "training.epochs: must be at least 1; got 0"),
        ({"training": {"epochs": None}}, "training.epochs: must be a whole number; got null"),
        ({"training": {"epochs": [1]}}, "training.epochs: must be a whole number; got [1]"),
        ({"model": {"dropout": 1}}, "model.dropout: must be less than 1; got 1"),
        ({"model": {"dropout": "a"}}, 'model.dropout: must be a number; got "a"'),
        ({"model": {"dropout": float("nan")}}, "model.dropout: must be a finite number; got NaN"),
        (
            {"training": {"clip_norm": float("inf")}},
            "training.clip_norm: must be a finite number; got Infinity",
        ),
        (
            {"tokenizer": {"lowercase": "yes"}},
            'tokenizer.lowercase: must be true or false; got "yes"',
        ),
        ({"tokenizer": {"lowercase": 1}}, "tokenizer.lowercase: must be true or false; got 1"),
        ({"model": 5}, "model: must be a section (keys and values); got 5"),
        ({"model": None}, "model: must be a section (keys and values); got null"),
        ({"data": {"source": {"path": 3}}}, "data.source.path: must be text or a list; got 3"),
        ({"data": {"source": {"path": ["a", 3]}}}, "data.source.path: item 2: must be text; got 3"),
        (
            {"data": {"sources": {"a": 3, "b": {"path": "c"}}}},
            "data.sources.a: must be a section (keys and values); got 3",
        ),
        (
            {"data": {"sources": {"a": {"path": "b", "shares": 1}}}},
            "data.sources.a.shares: unknown key; did you mean data.sources.a.share?",
        ),
        (
            {"data": {"sources": {"a": {"path": "b", "share": 2}}}},
            "data.sources.a.share: must be at most 1; got 2",
        ),
        (
            {"data": {"source": {"path": "a", "columns": {"en": 1.5, "de": 2}}}},
            "data.source.columns: en: must be a whole number or text; got 1.5",
        ),
        (
            {"training": {"batch": {"size": 0}}},
            "training.batch.size: must be at least 1; got 0",
        ),
        (
            {"data": {"source": {"path": "a"}, "dev": 3, "test": {"path": "b"}}},
            "data.dev: must be a section (keys and values); got 3",
        ),
        (
            {"model": {"attention": {"score": "addtive"}}},
            'model.attention.score: "addtive" is not one of dot, general, concat, additive, '
            "concat_shared, linear, none; did you mean additive?",
        ),
        (
            {"tokenizer": {"kind": "charcters"}},
            'tokenizer.kind: "charcters" is not one of words, bpe, unigram, characters; ',
        ),
        (
            {"model": {"decoder": {"kind": "transformer"}}},
            'model.decoder.kind: "transformer" is not one of luong, bahdanau, conditional, gnmt',
        ),
        ({"model": {"bridge": 7}}, "model.bridge: 7 is not one of copy, dense, backward, zero"),
        *(
            (
                {"name": name},
                "name: must be a name of letters, digits, '_', '.' and '-' that does not begin "
                f"with '.' or '-'; got \"{name}\"",
            )
            for name in ("a b", "..", "a/b", "-a")
        ),
        (
            {"data": {"direction": "english-de", "source": {"path": "a"}}},
            "data.direction: must be two language codes, for example en-de, each of two or three "
            'small letters, without a region or script (en-fr for en-fr_CA); got "english-de"',
        ),
        ({5: 6}, "5: unknown key; known keys: name, seed, data,"),
        ({None: 6}, "null: unknown key; known keys: name, seed, data,"),
    ],
    ids=str,
)
def test_problem_of_one_key(sections: Values, problem: str) -> None:
    (found,) = problems_of({**values_with(), **sections})
    assert found.startswith(problem)


def test_all_problems_are_listed_at_once() -> None:
    problems = problems_of(
        {
            "data": {"direction": "en-en", "source": {"path": "a"}},
            "model": {"bridge": "copy", "encoder": {"layrs": 2}},
            "training": {"epochs": "many", "learning_rate": {"peak": -1}, "r_drop": 5},
        }
    )
    assert sorted(problems) == [
        "data.direction: the source and target languages of en-en are the same",
        "model.bridge, model.decoder.hidden_size: copy needs equal sizes (encoder output 512, "
        "decoder 256); or use dense",
        "model.encoder.layrs: unknown key; did you mean model.encoder.layers?",
        "name: must be given",
        'training.epochs: must be a whole number; got "many"',
        "training.learning_rate.peak: must be more than 0; got -1",
        "training.r_drop: left nmt after 0.1, and is now always 0; remove it, or use nmt 0.1 for "
        "this run",
    ]


@pytest.mark.parametrize(
    "values", [{"name": "\ud800"}, {"\udfff": 1}, {"data": {"source": ["\udc00"]}}]
)
def test_half_of_a_surrogate_pair_from_json(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^a: half of a surrogate pair is not a character$"):
        config_from_dict(values, "a")


def test_a_rule_ignores_keys_that_are_wrong_themselves() -> None:
    assert problems_of({"name": "x", "data": {"source": "a.zip"}}) == [
        'data.source: must be a section (keys and values); got "a.zip"'
    ]
    # Equal sizes cannot be checked if one of them is not a number.
    assert (
        len(problems_of(values_with(model={"bridge": "copy", "decoder": {"hidden_size": "512"}})))
        == 1
    )


def test_the_given_values_stay_unchanged() -> None:
    values = values_with(trainin={}, model={"bridge": "copper"})
    problems_of(values)
    assert values == values_with(trainin={}, model={"bridge": "copper"})


KEYS = (
    st.sampled_from(
        sorted(
            {key for section in SECTIONS for key in section.model_fields} | {"en", "zzz", "", "a.b"}
        )
    )
    | st.integers()
)
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["auto", "lines", "none", "en-de"]),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(KEYS, values, max_size=4),
)


@given(st.dictionaries(st.sampled_from(list(Config.model_fields)) | KEYS, JUNK))
def test_any_wrong_configuration_is_a_config_error(values: Values) -> None:
    with suppress(ConfigError):
        config_from_dict(values)
