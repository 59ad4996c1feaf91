"""Writing configurations as YAML, with comments."""

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.load import config_from_dict, load_config
from nmt.config.schema import SourceConfig
from nmt.config.yaml_text import comment, dump, parse
from nmt.errors import ConfigError
from tests.config.examples import MINIMAL, Values, values_with, write


def test_dump_describes_every_key_in_one_column() -> None:
    lines = [line for line in dump(MINIMAL).splitlines() if line]
    assert len({line.index("  # ") for line in lines}) == 1
    (score,) = (line for line in lines if line.lstrip().startswith("score:"))
    assert (
        score.split("  # ")[1]
        == "dot, general, concat, additive, concat_shared, linear or none; none: no attention"
    )
    assert dump(MINIMAL).count("\n\n") == 6  # between the sections


@pytest.mark.parametrize(
    "path", ["a\nb", "a\x85b", "a\u2028b", "\x0b", "#", "a: b", "'", '"', "~", "a \\ b"]
)
def test_dump_keeps_any_text_on_its_line(tmp_path: Path, path: str) -> None:
    config = config_from_dict(values_with(data={"source": {"path": path}}))
    assert len(dump(config).split("\n")) == len(dump(MINIMAL).split("\n"))
    assert load_config(write(tmp_path, dump(config))) == config


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00001, "0.00001"), (3.5e-7, "0.00000035"), (1e-12, "1.0e-12"), (0.5, "0.5")],
)
def test_dump_writes_small_numbers_without_an_exponent(value: float, text: str) -> None:
    config = config_from_dict(values_with(training={"weight_decay": value}))
    assert f"  weight_decay: {text} " in dump(config)


def test_dump_names_every_key() -> None:
    given_sets = {"source": {"path": "a"}, "dev": {"path": "b"}, "test": {"path": "c"}}
    config = config_from_dict(values_with(data=given_sets))
    assert yaml.safe_load(dump(config)) == config.to_dict()


texts = st.text(st.characters(codec="utf-8"), min_size=1)
names = st.from_regex(r"[A-Za-z0-9_ä][A-Za-z0-9_.-]*", fullmatch=True) | st.sampled_from(
    ["1e5", "0x1F", "1_0", "1.5", "no", "null", "true", "2026-11-21", "010", "1.e3", "0o7"]
)
# Normalized by Path, which drops parts without meaning, as the configuration does.
paths = texts.filter(lambda text: "\0" not in text).map(lambda text: str(Path(text)))


@settings(max_examples=20)  # each takes 40 ms
@given(
    name=names,
    path=paths,
    peak=st.floats(min_value=1e-12, max_value=10, exclude_min=True),
    columns=st.none()
    | st.fixed_dictionaries({"en": st.integers(1, 9), "de": st.integers(10, 19) | texts}),
    max_minutes=st.none() | st.floats(min_value=1e-3, max_value=1e9),
)
def test_dump_round_trips(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    path: str,
    peak: float,
    columns: Values | None,
    max_minutes: float | None,
) -> None:
    config = config_from_dict(
        {
            "name": name,
            "data": {"source": {"path": path, "columns": columns}},
            "training": {"learning_rate": {"peak": peak}, "max_minutes": max_minutes},
        }
    )
    assert config_from_dict(config.to_dict()) == config
    text = dump(config)
    copy = load_config(write(tmp_path_factory.getbasetemp(), text))
    assert copy == config
    fast = parse(text, "x")
    with pytest.MonkeyPatch.context() as patch:  # an installation without libyaml
        patch.setattr(yaml, "__with_libyaml__", False)
        assert parse(text, "x") == fast
    assert copy.data.source == SourceConfig(path=Path(path), columns=columns)


# Comments

BEFORE = """\
# The head # stays
# as it is.

name: test   # an old comment
data:
  direction: "en-de"
  # A line of its own stays.
  source:
    path: 'x # y.zip'
    columns: {en: 1, de: 2}
  dev:
    format: lines
    files:
      en: a  # no key of the configuration
      de: b
  test: {format: lines, files: {en: a, de: b}}

training:
    learning_rate:
        peak: 1e-3
"""
AFTER = """\
# The head # stays
# as it is.

name: test                   # names the prepared folder and the run folder
data:                        # sentence pairs and languages
  direction: "en-de"         # source and target language codes, for example en-de
  # A line of its own stays.
  source:                    # where the pairs come from (only the training pairs if `dev` and `test` are given)
    path: 'x # y.zip'        # file to read, plain or .gz, .bz2, .xz, .zst, .zip; or a pattern (parts/*.gz), or a list of both; prepared: the folder
    columns: {en: 1, de: 2}  # column of each language: a number (from 1), a name in the header row, or a name in the records
  dev:                       # a separate dev set, used unchanged (needs `test` too)
    format: lines            # manythings (English first), tatoeba (id, text, id, text), tsv, csv, lines (two files), links (ids, sentences, sentences), jsonl, parquet, tmx, po, xliff or prepared (a folder)
    files:                   # lines: the file of each language, or the files (a pattern, or a list)
      en: a  # no key of the configuration
      de: b
  test: {format: lines, files: {en: a, de: b}}  # a separate test set, used unchanged (needs `dev` too)

training:                    # how to train the model
    learning_rate:           # learning rate and its schedule
        peak: 1e-3           # highest learning rate
"""


def test_comments_stand_beside_their_keys() -> None:
    assert comment(BEFORE) == AFTER
    assert comment(AFTER) == AFTER
    assert yaml.safe_load(AFTER) == yaml.safe_load(BEFORE)


def test_comments_need_valid_yaml() -> None:
    with pytest.raises(ConfigError, match="not valid YAML"):
        comment("name: [")


# Limits: a configuration may come from a stranger

ALIASES = "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'x'}]\n" for i in range(20)
)
ENORMOUS = [
    pytest.param(
        ALIASES,
        "line 5, column 35: not valid YAML: more than 10,000 values, with its aliases",
        id="aliases",
    ),
    pytest.param(
        "a: &a [*a]",
        "line 1, column 8: not valid YAML: the anchor a contains itself",
        id="recursive alias",
    ),
    pytest.param(
        "a: " + "[" * 20_000,
        "line 1, column 53: not valid YAML: nested more than 50 deep",
        id="deep lists",
    ),
    pytest.param(
        "- " * 20_000 + "x",
        "line 1, column 101: not valid YAML: nested more than 50 deep",
        id="deep items",
    ),
    pytest.param("{a: " * 10_000, "not valid YAML: nested more than 50 deep", id="deep mappings"),
    pytest.param(
        "- x\n" * 10_001,
        "line 10001, column 3: not valid YAML: more than 10,000 values",
        id="many values",
    ),
    pytest.param(
        "a: " + "1:" * 100_000 + "1",
        "line 1, column 4: not valid YAML: not a valid int",
        id="long sexagesimal number",
    ),
    pytest.param(
        "#" * 300_000,
        "config: longer than 262,144 characters; this is no configuration",
        id="long text",
    ),
    pytest.param(
        "a: " + "1" * 5000, "line 1, column 4: not valid YAML: not a valid int", id="long number"
    ),
]


@pytest.mark.parametrize(("text", "message"), ENORMOUS)
def test_an_enormous_text_is_refused_at_once(text: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(ConfigError) as error:
        parse(text, "config")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "text",
    ["0b_", "0x_", "!!int x", "!!float x", "!!bool x", "!!timestamp x", "!!binary x", "!!set {x}"],
)
def test_a_value_that_yaml_cannot_build_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"config, line 1, column 4: not valid YAML: .+$"):
        parse(f"a: {text}", "config")


@pytest.mark.parametrize("text", ["a: \udc80", 'a: "\\U00110000"'])
def test_what_is_no_character_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^config.*: not valid YAML: .+$"):
        parse(text, "config")


def test_aliases_repeat_a_value() -> None:
    assert parse("a: &a {x: [1, 2]}\nb: *a\nc: [*a, *a]", "config")["c"] == [{"x": [1, 2]}] * 2
