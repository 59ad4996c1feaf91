"""Wrong keys and values: each message by its text."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.load import config_from_dict
from nmt.config.schema import Config
from nmt.errors import ConfigError
from tests.config.examples import SECTIONS, Values, problems_of, values_with


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
            {"model": {"cutoffs": [10, 2.5]}},
            "model.cutoffs: item 2: must be a whole number; got 2.5",
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


def test_name_must_be_given() -> None:
    assert problems_of({"data": {"source": {"path": "a"}}}) == ["name: must be given"]


def test_all_problems_are_listed_at_once() -> None:
    problems = problems_of(
        {
            "data": {"direction": "en-en", "source": {"path": "a"}},
            "model": {"bridge": "copy", "encoder": {"layrs": 2}},
            "training": {"epochs": "many", "learning_rate": {"peak": -1}},
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
    ]


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
