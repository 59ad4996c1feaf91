"""nmt.config.load: what is accepted, and every fault by its text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nmt.config.load import config_from_dict, differences, load, read_yaml
from nmt.config.schema import Config, Section, SourceConfig
from nmt.config.yaml_text import comment, dump
from nmt.errors import ConfigError

Values = dict[str, Any]


def values_with(**sections: Any) -> Values:
    """The least that is a configuration, with `sections` put over it."""
    return {"name": "test", "data": {"source": {"path": "deu-eng.zip"}}, **sections}


def faults_of(values: Values) -> list[str]:
    """The faults that are found in `values`, without where they come from."""
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


def sections(section: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield section
    for field in section.model_fields.values():
        for choice in (field.annotation, *get_args(field.annotation)):
            if isinstance(choice, type) and issubclass(choice, BaseModel):
                yield from sections(choice)


SECTIONS = list(dict.fromkeys(sections(Config)))
MINIMAL = config_from_dict(values_with())


# What is accepted


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


def test_a_whole_number_may_stand_for_a_fraction() -> None:
    assert config_from_dict(values_with(model={"dropout": 0})).model.dropout == 0


def test_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        MINIMAL.seed = 2  # type: ignore[misc]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_section_is_strict_and_every_key_described(section: type[BaseModel]) -> None:
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
                assert [choice for choice in get_args(kind) if choice not in (field.description or "")] == []


# Faults of single keys


@pytest.mark.parametrize(
    ("sections", "fault"),
    [
        ({"trainin": {}}, "trainin: unknown key; did you mean training?"),
        ({"model": {"enc": {}}}, "model.enc: unknown key; did you mean encoder?"),
        ({"model": {"encoder": {"hiden_size": 3}}}, "model.encoder.hiden_size: unknown key; did you mean hidden_size?"),
        ({"model": {"decoder": {"zzz": 3}}}, "model.decoder.zzz: unknown key; known keys: kind, cell, hidden_size, layers, "),
        ({"epochs": 3}, "epochs: unknown key; did you mean training.epochs?"),
        ({"bidirectional": True}, "bidirectional: unknown key; did you mean model.encoder.bidirectional?"),
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
        ({"training": {"clip_norm": float("inf")}}, "training.clip_norm: must be a finite number; got Infinity"),
        ({"tokenizer": {"lowercase": "yes"}}, 'tokenizer.lowercase: must be true or false; got "yes"'),
        ({"tokenizer": {"lowercase": 1}}, "tokenizer.lowercase: must be true or false; got 1"),
        ({"model": 5}, "model: must be a section (keys and values); got 5"),
        ({"model": None}, "model: must be a section (keys and values); got null"),
        ({"data": {"source": {"path": 3}}}, "data.source.path: must be text; got 3"),
        (
            {"data": {"source": {"path": "a", "columns": {"en": 1.5, "de": 2}}}},
            "data.source.columns: en: must be a whole number or text; got 1.5",
        ),
        (
            {"model": {"attention": {"score": "addtive"}}},
            'model.attention.score: "addtive" is not one of dot, general, concat, additive, concat_shared, linear, none; '
            "did you mean additive?",
        ),
        (
            {"tokenizer": {"kind": "charcters"}},
            'tokenizer.kind: "charcters" is not one of words, bpe, unigram, characters; did you mean',
        ),
        ({"model": {"bridge": 7}}, "model.bridge: 7 is not one of copy, dense, backward, zero"),
        (
            {"name": "a b"},
            "name: must be a name of letters, digits, '_', '.' and '-' that does not begin with '.' or '-'; got \"a b\"",
        ),
        (
            {"name": ".."},
            "name: must be a name of letters, digits, '_', '.' and '-' that does not begin with '.' or '-'; got \"..\"",
        ),
        (
            {"name": "a/b"},
            "name: must be a name of letters, digits, '_', '.' and '-' that does not begin with '.' or '-'; got \"a/b\"",
        ),
        (
            {"name": "-a"},
            "name: must be a name of letters, digits, '_', '.' and '-' that does not begin with '.' or '-'; got \"-a\"",
        ),
        (
            {"data": {"direction": "english-de", "source": {"path": "a"}}},
            'data.direction: must be two language codes, for example en-de; got "english-de"',
        ),
        ({5: 6}, "5: unknown key; known keys: name, seed, data,"),
        ({None: 6}, "null: unknown key; known keys: name, seed, data,"),
    ],
    ids=str,
)
def test_fault_of_one_key(sections: Values, fault: str) -> None:
    (found,) = faults_of({**values_with(), **sections})
    assert found.startswith(fault)


def test_name_must_be_given() -> None:
    assert faults_of({"data": {"source": {"path": "a"}}}) == ["name: must be given"]


def test_all_faults_are_listed_at_once() -> None:
    faults = faults_of(
        {
            "data": {"direction": "en-en", "source": {"path": "a"}},
            "model": {"bridge": "copy", "encoder": {"layrs": 2}},
            "training": {"epochs": "many", "learning_rate": {"peak": -1}},
        }
    )
    assert sorted(faults) == [
        "data.direction: the source and target languages of en-en are the same",
        "model.bridge, model.decoder.hidden_size: copy needs equal sizes (encoder output 512, decoder 256); or use dense",
        "model.encoder.layrs: unknown key; did you mean layers?",
        "name: must be given",
        'training.epochs: must be a whole number; got "many"',
        "training.learning_rate.peak: must be more than 0; got -1",
    ]


def test_a_rule_is_not_judged_by_a_key_that_is_faulty_itself() -> None:
    assert faults_of({"name": "x", "data": {"source": "a.zip"}}) == [
        'data.source: must be a section (keys and values); got "a.zip"'
    ]
    # Equal sizes cannot be told where one of them is no number.
    assert len(faults_of(values_with(model={"bridge": "copy", "decoder": {"hidden_size": "512"}}))) == 1


def test_values_are_left_as_they_were() -> None:
    values = values_with(trainin={}, model={"bridge": "copper"})
    faults_of(values)
    assert values == values_with(trainin={}, model={"bridge": "copper"})


# Combinations


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"direction": "en-en", "source": {"path": "a"}}, "data.direction: the source and target languages of en-en are the same"),
        (
            {"source": {"path": "a"}, "dev": {"path": "b"}},
            "data.dev, data.test: give both or neither; without them, both sets are split from data.source",
        ),
        (
            {"source": {"path": "a"}, "test": {"path": "b"}},
            "data.dev, data.test: give both or neither; without them, both sets are split from data.source",
        ),
        ({}, "data.source.path: must be given (or data.source.url)"),
        ({"source": {"format": "lines"}}, "data.source.files: format lines needs one file for each language: de and en"),
        (
            {"source": {"format": "lines", "files": {"en": "a", "fr": "b"}}},
            "data.source.files: format lines needs one file for each language: de and en",
        ),
        (
            {"source": {"format": "lines", "files": {"en": "a", "de": "b"}, "path": "c"}},
            "data.source.path, data.source.format: format lines reads `files`; remove `path`",
        ),
        (
            {"source": {"format": "lines", "files": {"en": "a", "de": "b"}, "url": "c"}},
            "data.source.url, data.source.format: format lines reads `files`; remove `url`",
        ),
        (
            {"source": {"format": "lines", "files": {"en": "a", "de": "b"}, "sha256": "c"}},
            "data.source.sha256, data.source.format: format lines reads `files`; remove `sha256`",
        ),
        (
            {"source": {"format": "lines", "files": {"en": "a", "de": "b"}, "columns": {"en": 1, "de": 2}}},
            "data.source.columns, data.source.format: format lines reads `files`; remove `columns`",
        ),
        (
            {"source": {"path": "c", "files": {"en": "a", "de": "b"}}},
            "data.source.files, data.source.format: only format lines reads `files`; give `path` or `url`",
        ),
        (
            {"source": {"format": "tsv", "path": "c"}},
            "data.source.columns: format tsv needs one column for each language: de and en",
        ),
        (
            {"source": {"format": "tsv", "path": "c", "columns": {"en": 1}}},
            "data.source.columns: needs one column for each language: de and en",
        ),
        (
            {"direction": "fr-de", "source": {"path": "c"}},
            "data.source.columns: format manythings has English in its first column; for other languages, give the column of each",
        ),
        (
            {"direction": "fr-de", "source": {"path": "c", "format": "tatoeba"}},
            "data.source.columns: format tatoeba has English in its first column; for other languages, give the column of each",
        ),
        (
            {"source": {"path": "a"}, "dev": {"format": "lines"}, "test": {"path": "c"}},
            "data.dev.files: format lines needs one file for each language: de and en",
        ),
        ({"source": {"path": "a"}, "dev": {"path": "b"}, "test": {}}, "data.test.path: must be given (or data.test.url)"),
    ],
    ids=str,
)
def test_combination_of_data(data: Values, fault: str) -> None:
    assert faults_of(values_with(data=data)) == [fault]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subword_vocabulary_has_its_size_from_the_tokenizer(kind: str) -> None:
    assert faults_of(values_with(tokenizer={"kind": kind}, vocabulary={"max_size": 100})) == [
        f"vocabulary.max_size, tokenizer.kind: tokenizer.size sets the vocabulary size of {kind}; remove vocabulary.max_size"
    ]


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (
            {"attention": {"score": "dot"}},
            "model.attention.score, model.decoder.hidden_size: dot needs equal sizes "
            "(encoder output 512, decoder 256); or use general",
        ),
        (
            {"attention": {"score": "concat_shared"}},
            "model.attention.score, model.decoder.hidden_size: concat_shared needs equal sizes "
            "(encoder output 512, decoder 256); or use general",
        ),
        (
            {"attention": {"score": "additive", "scaled": True}},
            "model.attention.scaled, model.attention.score: only dot and general can be scaled, not additive",
        ),
        (
            {"bridge": "copy"},
            "model.bridge, model.decoder.hidden_size: copy needs equal sizes (encoder output 512, decoder 256); or use dense",
        ),
        (
            {"bridge": "copy", "encoder": {"bidirectional": False, "cell": "gru"}},
            "model.bridge, model.decoder.cell: copy cannot turn the state of gru into one of lstm; use dense",
        ),
        (
            {"bridge": "copy", "encoder": {"bidirectional": False}, "decoder": {"layers": 2}},
            "model.bridge, model.decoder.layers: copy cannot fill 2 decoder layers from 1 in the encoder; use dense",
        ),
        (
            {"decoder": {"readout": "deep"}},
            "model.decoder.readout, model.decoder.kind: luong needs attentional or concat, not deep",
        ),
        (
            {"decoder": {"kind": "bahdanau"}},
            "model.decoder.readout, model.decoder.kind: bahdanau needs state, deep or maxout, not attentional",
        ),
        (
            {"decoder": {"readout": "concat", "input_feeding": True}},
            "model.decoder.input_feeding, model.decoder.readout: input feeding needs kind luong and readout attentional",
        ),
        (
            {"bridge": "backward", "encoder": {"bidirectional": False}},
            "model.bridge, model.encoder.bidirectional: backward needs a bidirectional encoder; or use dense or copy",
        ),
        (
            {"encoder": {"residual": True}},
            "model.encoder.residual, model.encoder.layers: residual connections start at the second layer, but there is only one",
        ),
        (
            {"decoder": {"residual": True}},
            "model.decoder.residual, model.decoder.layers: residual connections start at the second layer, but there is only one",
        ),
        (
            {"attention": {"kind": "local_p", "score": "none"}},
            "model.attention.kind, model.attention.score: local_p needs attention, but the score is none",
        ),
        (
            {"attention": {"kind": "local_m", "score": "none"}},
            "model.attention.kind, model.attention.score: local_m needs attention, but the score is none",
        ),
        (
            {"attention": {"kind": "coverage", "score": "linear"}},
            "model.attention.kind, model.attention.score: coverage needs concat, additive or concat_shared, not linear",
        ),
        (
            {"attention": {"kind": "coverage"}},
            "model.attention.kind, model.attention.score: coverage needs concat, additive or concat_shared, not general",
        ),
        (
            {"attention": {"window": 3}},
            "model.attention.window, model.attention.kind: global has no window; remove it or use local_m or local_p",
        ),
        (
            {"attention": {"score": "none", "heads": 2}},
            "model.attention.heads, model.attention.score: heads need attention, but the score is none",
        ),
        (
            {"attention": {"kind": "coverage", "score": "additive", "heads": 2}},
            "model.attention.heads, model.attention.kind: coverage allows only one head",
        ),
        (
            {"attention": {"heads": 3}, "encoder": {"hidden_size": 384}},
            "model.attention.heads, model.decoder.hidden_size: 3 heads cannot divide 256 units evenly",
        ),
        (
            {"attention": {"heads": 3}, "decoder": {"hidden_size": 384}},
            "model.attention.heads, model.encoder.hidden_size: 3 heads cannot divide 512 units evenly",
        ),
        (
            {"output": "adaptive", "tie_embeddings": "target"},
            "model.output, model.tie_embeddings: adaptive has no output matrix to share; use softmax or tie none",
        ),
        (
            {"cutoffs": [100]},
            "model.cutoffs, model.output: softmax has no cutoffs; remove them or use adaptive",
        ),
        (
            {"output": "adaptive", "cutoffs": [100, 50]},
            "model.cutoffs: must be positive numbers in increasing order",
        ),
        (
            {"tie_embeddings": "all"},
            "model.tie_embeddings, vocabulary.joint: all needs a joint vocabulary; or use target",
        ),
    ],
    ids=str,
)
def test_combination_of_the_model(model: Values, fault: str) -> None:
    assert faults_of(values_with(model=model)) == [fault]


def test_combinations_of_the_model_with_other_sections() -> None:
    tied = {"tie_embeddings": "all", "src_vectors": "wiki.vec"}
    assert faults_of(values_with(model=tied, vocabulary={"joint": True})) == [
        "model.src_vectors, model.tie_embeddings: tie_embeddings all has only one embedding; give model.tgt_vectors instead"
    ]
    assert faults_of(values_with(model={"output": "adaptive"}, training={"label_smoothing": 0.1})) == [
        "model.output, training.label_smoothing: label smoothing computes all words, which adaptive avoids; set it to 0"
    ]
    assert faults_of(values_with(model={"attention": {"score": "none"}}, training={"coverage_loss": 1.0})) == [
        "training.coverage_loss, model.attention.score: the coverage loss needs attention, but the score is none"
    ]


@pytest.mark.parametrize(
    ("training", "fault"),
    [
        ({"average": "best"}, "training.average, training.keep_best: averaging needs at least two checkpoints; keep more"),
        ({"average": "last"}, "training.average, training.keep_last: averaging needs at least two checkpoints; keep more"),
        ({"momentum": 0.9}, "training.momentum, training.optimizer: only sgd uses momentum, not adamw"),
    ],
    ids=str,
)
def test_combination_of_the_training(training: Values, fault: str) -> None:
    assert faults_of(values_with(training=training)) == [fault]


# Reading


def test_read_from_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, "name: test\ndata: {source: {path: deu-eng.zip}}\n")
    assert load(path) == MINIMAL


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-4", 1e-4), ("1.0e-4", 1e-4), ("1E-4", 1e-4), ("1e+0", 1), ("1.", 1), (".5", 0.5), ("0.001", 1e-3), ("1_000.5", 1000.5)],
)
def test_a_number_is_a_number_however_it_is_written(tmp_path: Path, text: str, value: float) -> None:
    path = write(tmp_path, f"name: x\ndata: {{source: {{path: a}}}}\ntraining:\n  learning_rate:\n    peak: {text}\n")
    assert load(path).training.learning_rate.peak == value


def test_norwegian_is_no_truth_value(tmp_path: Path) -> None:
    path = write(tmp_path, "name: x\ndata: {direction: en-no, source: {path: a, columns: {en: 1, no: 2}}}\n")
    assert load(path).data.source.columns == {"en": 1, "no": 2}


def test_a_date_is_text(tmp_path: Path) -> None:
    assert load(write(tmp_path, "name: 2026-11-21\ndata: {source: {path: a}}\n")).name == "2026-11-21"


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: no such file; the configurations that come with nmt are in configs/$"):
        load(tmp_path / "nowhere.yaml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read as UTF-8 text"):
        load(tmp_path)


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes("name: Bär".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"x\.yaml: cannot be read as UTF-8 text"):
        load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\nname: y\n", "x.yaml, line 1, column 1: not valid YAML: repeated key: name"),
        ("name: x\ndata:\n  split: {}\n  split: {}\n", "x.yaml, line 3, column 3: not valid YAML: repeated key: split"),
        ("name: x\ndata: [1, 2\n", "x.yaml, line 3, column 1: not valid YAML: "),
        ("name: x\n  seed: 1\n", "x.yaml, line 2, column 7: not valid YAML: mapping values are not allowed here"),
        ("name: 'x\n", "x.yaml, line 2, column 1: not valid YAML: found unexpected end of stream"),
        ("name: !!python/object:os.system x\n", "x.yaml, line 1, column 7: not valid YAML: could not determine a constructor"),
        ("name: \x00\n", "x.yaml: not valid YAML: "),
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
    path = write(tmp_path, "name: test\ndata: {source: {path: deu-eng.zip}}\ntraining: {epochs: 9, max_steps: 9}\n")
    found: Any = load(path, [override]).to_dict()
    for part in key.split("."):
        found = found[part]
    assert found == value


def test_the_last_override_counts(tmp_path: Path) -> None:
    path = write(tmp_path, "name: test\ndata: {source: {path: a}}\n")
    assert load(path, ["seed=2", "seed=3"]).seed == 3


def test_a_fault_is_blamed_on_what_it_comes_from(tmp_path: Path) -> None:
    path = write(tmp_path, "name: test\ndata: {source: {path: a}}\n")
    with pytest.raises(ConfigError) as caught:
        load(path, ["seed=2", "decoding.bem=3"])
    assert str(caught.value).startswith(f"{path} with --set seed=2 --set decoding.bem=3: decoding.bem: unknown key")
    write(tmp_path, "name: test\nsead: 3\ndata: {source: {path: a}}\n")
    with pytest.raises(ConfigError) as caught:
        load(path, ["seed=2"])
    assert str(caught.value).startswith(f"{path}: sead: unknown key")
    write(tmp_path, "name: test\nseed: many\ndata: {source: {path: a}}\n")
    assert load(path, ["seed=2"]).seed == 2  # what is set takes the place of what is wrong


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.epochs", "--set training.epochs: write key=value, for example --set training.epochs=3"),
        ("=3", "--set =3: write key=value, for example --set training.epochs=3"),
        ("seed=[1", "--set seed=[1, line 1, column 3: not valid YAML: "),
        ("trainin.epochs=3", "{path} with --set trainin.epochs=3: trainin: unknown key; did you mean training?"),
        ("training..epochs=3", "{path} with --set training..epochs=3: training.: unknown key; known keys: start_from"),
        ("seed.x=3", '{path} with --set seed.x=3: seed: must be a whole number; got {"x": 3}'),
        ("seed=x", '{path} with --set seed=x: seed: must be a whole number; got "x"'),
    ],
)
def test_override_that_cannot_be(tmp_path: Path, override: str, message: str) -> None:
    path = write(tmp_path, "name: test\ndata: {source: {path: a}}\n")
    with pytest.raises(ConfigError) as caught:
        load(path, [override])
    assert str(caught.value).startswith(message.replace("{path}", str(path)))


# Writing


def test_differences_by_dotted_key() -> None:
    other = config_from_dict(values_with(seed=2, training={"batch": {"size": 32}}, tokenizer={"lowercase": True}))
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


def test_dump_describes_every_key_in_one_column() -> None:
    lines = [line for line in dump(MINIMAL).splitlines() if line]
    assert len({line.index("  # ") for line in lines}) == 1
    (score,) = (line for line in lines if line.lstrip().startswith("score:"))
    assert score.split("  # ")[1] == "dot, general, concat, additive, concat_shared, linear or none (no attention)"
    assert dump(MINIMAL).count("\n\n") == 6  # between the sections


@pytest.mark.parametrize("path", ["a\nb", "a\x85b", "a\u2028b", "\x0b", "#", "a: b", "'", '"', "~", "a \\ b"])
def test_dump_keeps_any_text_on_its_line(tmp_path: Path, path: str) -> None:
    config = config_from_dict(values_with(data={"source": {"path": path}}))
    assert len(dump(config).split("\n")) == len(dump(MINIMAL).split("\n"))
    assert load(write(tmp_path, dump(config))) == config


def test_dump_names_every_key() -> None:
    given_sets = {"source": {"path": "a"}, "dev": {"path": "b"}, "test": {"path": "c"}}
    config = config_from_dict(values_with(data=given_sets))
    assert yaml.safe_load(dump(config)) == config.to_dict()


texts = st.text(st.characters(codec="utf-8"), min_size=1)
names = st.from_regex(r"[A-Za-z0-9_ä][A-Za-z0-9_.-]*", fullmatch=True) | st.sampled_from(
    ["1e5", "0x1F", "1_0", "1.5", "no", "null", "true", "2026-11-21", "010", "1.e3", "0o7"]
)
# Paths as they come back from Path(path), which drops what means nothing.
paths = texts.filter(lambda text: "\0" not in text).map(lambda text: str(Path(text)))


@given(
    name=names,
    path=paths,
    peak=st.floats(min_value=1e-12, max_value=10, exclude_min=True),
    columns=st.none() | st.fixed_dictionaries({"en": st.integers(1, 9) | texts, "de": st.integers(1, 9) | texts}),
    max_minutes=st.none() | st.floats(min_value=1e-3, max_value=1e9),
)
def test_dump_round_trips(
    tmp_path_factory: pytest.TempPathFactory, name: str, path: str, peak: float, columns: Values | None, max_minutes: float | None
) -> None:
    config = config_from_dict(
        {
            "name": name,
            "data": {"source": {"path": path, "columns": columns}},
            "training": {"learning_rate": {"peak": peak}, "max_minutes": max_minutes},
        }
    )
    assert config_from_dict(config.to_dict()) == config
    copy = write(tmp_path_factory.getbasetemp(), dump(config))
    assert load(copy) == config
    assert load(copy).data.source == SourceConfig(path=Path(path), columns=columns)


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
    path: 'x # y.zip'        # file to read: plain text, .gz or .zip (not for lines: see `files`)
    columns: {en: 1, de: 2}  # column of each language: a number (from 1) or a name in the header row
  dev:                       # a separate dev set, used unchanged (needs `test` too)
    format: lines            # manythings (English first), tatoeba (id, text, id, text), tsv or lines (one file per language)
    files:                   # lines: the file of each language
      en: a  # no key of the configuration
      de: b
  test: {format: lines, files: {en: a, de: b}}  # a separate test set, used unchanged (needs `dev` too)

training:                    # how to train the model
    learning_rate:           # learning rate and its schedule
        peak: 1e-3           # highest learning rate
"""


def test_comments_stand_beside_their_keys() -> None:
    assert comment(BEFORE) == AFTER
    assert yaml.safe_load(comment(BEFORE)) == yaml.safe_load(BEFORE)


def test_comments_written_twice_are_the_same() -> None:
    assert comment(comment(BEFORE)) == comment(BEFORE)


def test_an_unknown_key_keeps_its_comment() -> None:
    assert comment("name: x\nother: 1 # mine\n").splitlines()[1] == "other: 1 # mine"


def test_comments_of_what_is_no_yaml() -> None:
    with pytest.raises(ConfigError, match="not valid YAML"):
        comment("name: [")
