"""Replacement of unknown words: a table by hand, the case of the text, and names that are not in
the training data.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nmt as package
from nmt.commands import prepare, train
from nmt.config.schema import TokenizerConfig
from nmt.decoding.translation import (
    UNKNOWN,
    Replacement,
    replace_unknown,
    surface_forms,
    with_replacements,
)
from nmt.text.tokenizers import Tokenizer, load_tokenizer
from tests import toy
from tests.conftest import Run

SURFACES = ["Smith", "eats", "Quince"]


def attend_to(*positions: int) -> np.ndarray:
    """Weights [T, 4] with their peaks at `positions`; the last column is <eos>, which does not
    count.
    """
    weights = np.full((len(positions), 4), 0.1, np.float32)
    weights[:, 3] = 0.9
    weights[range(len(positions)), positions] = 0.5
    return weights


COPIED = (Replacement(0, 0, "Smith", "copied"), Replacement(2, 2, "Quince", "copied"))
NO_ATTENTION = np.zeros((3, 4), np.float32)


@pytest.mark.parametrize(
    ("tokens", "attention", "expected", "written"),
    [
        ("<unk> isst <unk>", attend_to(0, 1, 2, 3), COPIED, "Smith isst Quince"),
        ("<unk> x", NO_ATTENTION, (Replacement(0, None, "", "left out"),), "x"),
        ("a b", attend_to(0, 2), (), "a b"),
    ],
    ids=["copied", "without attention", "known words"],
)
def test_replacements(
    tokens: str, attention: np.ndarray, expected: tuple[Replacement, ...], written: str
) -> None:
    replaced = replace_unknown(tokens.split(), SURFACES, attention)
    assert replaced == expected
    assert " ".join(with_replacements(tokens.split(), replaced)).split() == written.split()


# --- The case of the text


def tokenizer_of(kind: str, lowercase: bool = True) -> Tokenizer:
    return load_tokenizer(
        TokenizerConfig.model_validate({"kind": kind, "lowercase": lowercase}), "en", "src", Path()
    )


WORDS = tokenizer_of("words")
TOKENIZERS = (WORDS, tokenizer_of("characters"), tokenizer_of("words", lowercase=False))


@pytest.mark.parametrize(
    ("tokenizer", "text", "expected"),
    [
        (WORDS, "Is Nagasaki far?", ["Is", "Nagasaki", "far", "￭?"]),
        (
            WORDS,
            "The  McDonald-Smiths\tPAID.",
            ["The", "McDonald", "￭-", "￭Smiths", "PAID", "￭."],
        ),
        (WORDS, "Tom, tom, TOM!", ["Tom", "￭,", "tom", "￭,", "TOM", "￭!"]),
        (WORDS, "İzmir and Ankara", ["İzmir", "and", "Ankara"]),  # two characters in lower case
        (WORDS, "Cafe\u0301 Zoe", ["Café", "Zoe"]),
        (WORDS, "A ￭ B", ["A", "■", "B"]),  # a joiner in the text stays its look-alike
        (WORDS, "", []),
        (TOKENIZERS[1], "Ab C", ["A", "b", "▁", "C"]),
    ],
)
def test_surface_forms(tokenizer: Tokenizer, text: str, expected: list[str]) -> None:
    assert surface_forms(text, tokenizer.split(text), tokenizer) == expected


@given(st.text(max_size=20))
def test_surface_forms_differ_in_case_alone(text: str) -> None:
    for tokenizer in TOKENIZERS:
        tokens = tokenizer.split(text)
        surfaces = surface_forms(text, tokens, tokenizer)
        assert len(surfaces) == len(tokens)
        for token, surface in zip(tokens, surfaces, strict=True):
            assert surface == token or surface.lower() == token.lower()
        if not tokenizer.signature.endswith("case:lower"):
            assert surfaces == tokens


# --- Names that are not in the training data


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small lower-casing run that has learned from names that occur once to write <unk>."""
    folder, random = tmp_path_factory.mktemp("names"), np.random.default_rng(1)

    def name() -> str:
        return "".join(
            random.choice([*"bdfgklmnprst"]) + random.choice([*"aeiou"]) for _ in range(4)
        ).capitalize()

    def pairs() -> Iterator[tuple[str, str]]:
        for _ in range(300):
            (verb, verbs), (noun, nouns), who, whom = (
                toy.VERBS[random.integers(3)],
                toy.NOUNS[random.integers(3)],
                name(),
                name(),
            )
            yield f"{who} {verb} the {noun}.", f"{who} {verbs} den {nouns}."
            yield f"The {noun} {verb} {whom}.", f"Der {nouns} {verbs} {whom}."

    config = toy.configure(
        toy.write_table(folder / "pairs.tsv", list(pairs())),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(folder / "prepared")},
        tokenizer={"kind": "words", "lowercase": True},
        vocabulary={"min_frequency": 2},
        model={
            "embedding_size": 32,
            "encoder": {"hidden_size": 32},
            "decoder": {"hidden_size": 64},
            "attention": {"scaled": True},
            "bridge": "zero",
            "dropout": 0.0,
        },
        training={
            "max_steps": 100,
            "epochs": 100,
            "validate_every": 100,
            "batch": {"size": 32},
            "learning_rate": {"peak": 0.005},
        },
    )
    prepare.run(config, progress=False)
    train.run(config, folder / "run", quiet=True)
    return folder / "run"


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_names_that_are_not_in_the_training_data_are_copied(
    trained: Path, nmt: Run, precision: str
) -> None:
    words = ("translate", "--run", trained, "--set", f"decoding.precision={precision}")
    result = nmt(*words, "Zaphod sees the dog.", "The tree finds McXyz.")
    assert result.out.splitlines() == ["Zaphod sieht den hund.", "der baum findet McXyz."]


def test_a_translation_lists_its_replacements(trained: Path) -> None:
    (translation,) = package.load(trained).translate(["The dog sees Zaphod."])
    assert translation.tokens == ("der", "hund", "sieht", UNKNOWN, "￭.")
    assert translation.replaced == (Replacement(3, 3, "Zaphod", "copied"),)


def test_off_by_option(trained: Path) -> None:
    translator = package.load(trained, overrides=["decoding.replace_unknown=false"])
    (translation,) = translator.translate(["Zaphod sees the dog."])
    assert (translation.text, translation.replaced) == ("<unk> sieht den hund.", ())
