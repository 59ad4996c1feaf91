"""Reranking with a model of the opposite direction: the equation, minimum Bayes risk with it, and
the errors of users.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from nmt.config.schema import DecodingConfig
from nmt.data.corpus import read_sentences
from nmt.decoding.forced import score_pairs
from nmt.decoding.translator import Translation, Translator
from nmt.extras.ranking.mbr import pairwise_chrf
from nmt.extras.ranking.reverse import Ranking
from nmt.files import read_json
from nmt.run.load import load_translator
from tests import toy
from tests.conftest import Run

SENTENCE = "The king sees the river."
BEAM = 8


def train(folder: Path, direction: str, seed: int = 1, **sections: Any) -> Path:
    folder.mkdir(exist_ok=True)
    split = {"dev": 20, "test": 40, "direction": "en-de", "seed": seed}
    data = {"direction": direction, "split": split, "prepared": str(folder / "prepared")}
    return toy.train(folder, data=data, **sections)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run in each direction, on the same split."""
    folder = tmp_path_factory.mktemp("reranking")
    return train(folder / "en-de", "en-de"), train(folder / "de-en", "de-en")


def sentences(runs: tuple[Path, Path]) -> list[str]:
    return read_sentences(runs[0].parent / "prepared", "test", "src")[:6]


def open_translator(runs: tuple[Path, Path], *overrides: str, rerank: bool = True) -> Translator:
    keys = [
        f"decoding.beam={BEAM}",
        *overrides,
        *([f"decoding.rerank.run={runs[1]}"] if rerank else []),
    ]
    return load_translator(runs[0], overrides=keys, n_best=BEAM)


def candidates_and_scores(
    runs: tuple[Path, Path], weight: float, reward: float
) -> list[tuple[list[Translation], np.ndarray]]:
    """The hypotheses of the beam for each sentence, with their scores by the equation."""
    backward = load_translator(runs[1])
    results = []
    for beam in open_translator(runs, rerank=False).translate_n_best(sentences(runs), BEAM):
        from_source = np.array([candidate.log_prob for candidate in beam])
        of_source = [
            score_pairs(backward, [(candidate.text, candidate.source)])[0].log_prob
            for candidate in beam
        ]
        lengths = np.array([len(candidate.tokens) + 1 for candidate in beam])
        results.append((beam, from_source + weight * np.array(of_source) + reward * lengths))
    return results


def test_the_equation(runs: tuple[Path, Path]) -> None:
    keys = "decoding.rerank.weight=0.7", "decoding.rerank.length_reward=-0.4"
    translator = open_translator(runs, *keys)
    reranked = translator.translate_n_best(sentences(runs), BEAM)
    changed = 0
    for new, (beam, scores) in zip(reranked, candidates_and_scores(runs, 0.7, -0.4), strict=True):
        order = np.argsort(-scores, kind="stable")
        assert [one.text for one in new] == [beam[i].text for i in order]
        np.testing.assert_allclose([one.score for one in new], scores[order], atol=1e-4)
        changed += new[0].text != beam[0].text
    assert changed
    best = [one.text for one in translator.translate(sentences(runs))]
    assert best == [n_best[0].text for n_best in reranked]  # chosen from the whole beam


def test_minimum_bayes_risk_weights_the_candidates_by_the_new_scores(
    runs: tuple[Path, Path],
) -> None:
    chosen = open_translator(runs, "decoding.method=mbr", "decoding.rerank.weight=0.7").translate(
        sentences(runs)
    )
    for new, (beam, scores) in zip(chosen, candidates_and_scores(runs, 0.7, 0.2), strict=True):
        p = np.exp(scores - scores.max())
        utilities = pairwise_chrf([one.text for one in beam]) @ (p / p.sum())
        assert new.score == pytest.approx(utilities.max(), abs=1e-3)


def test_truncated_candidates_come_last_and_empty_ones_have_a_score(
    runs: tuple[Path, Path],
) -> None:
    full = Translation(
        SENTENCE, "Der König sieht den Fluss.", log_prob=-9.0, token_log_probs=(-1.5,) * 6
    )
    empty, cut = (
        Translation(SENTENCE, log_prob=-30.0, token_log_probs=(-30.0,)),
        replace(full, complete=False, log_prob=-1.0),
    )
    config = DecodingConfig.model_validate({"rerank": {"weight": 1.0, "length_reward": 0.0}})
    first, second, last = Ranking(config, load_translator(runs[1]))([[cut, empty, full]])[0]
    assert [(one.text, one.complete) for one in (first, second, last)] == [
        (full.text, True),
        ("", True),
        (cut.text, False),
    ]
    assert -1000 < second.score < -30


# --- From the command line


def options(run: Path, *more: str) -> Sequence[str]:
    return ("--set", f"decoding.rerank.run={run}", *more)


def test_translate_and_evaluate(runs: tuple[Path, Path], tmp_path: Path, nmt: Run) -> None:
    forward, backward = runs
    assert nmt("share", "bundle", backward, "-o", tmp_path / "de-en.nmt").status == 0
    translated, with_bundle = (
        nmt("translate", "--run", forward, *options(path), SENTENCE)
        for path in (backward, tmp_path / "de-en.nmt")
    )
    assert (translated.status, translated.err) == (0, "")
    assert with_bundle == translated
    result = nmt("evaluate", forward, *options(backward, "--metric", "BLEU"))
    assert (result.status, result.err) == (0, "")
    assert f"decoding.rerank.run={backward}" in result.out
    (stored,) = (forward / "evaluation").glob("test-*.json")
    assert read_json(stored)["provenance"]["rerank"]["model"]["sha256"]


def test_a_run_of_the_same_direction_or_another_case_is_refused(
    runs: tuple[Path, Path], tmp_path: Path, nmt: Run
) -> None:
    result = nmt("translate", "--run", runs[0], *options(runs[0]), SENTENCE)
    text = f"decoding.rerank.run: {runs[0]} translates en-de; reranking needs a run for de-en"
    assert (result.status, result.out, result.err) == (1, "", f"nmt: {text}\n")
    lower = shutil.copytree(runs[1], tmp_path / "lower")
    config = (lower / "config.yaml").read_text(encoding="utf-8")
    assert config.count("lowercase: false") == 1
    (lower / "config.yaml").write_text(
        config.replace("lowercase: false", "lowercase: true"), encoding="utf-8"
    )
    result = nmt("translate", "--run", runs[0], *options(lower), SENTENCE)
    text = (
        f"decoding.rerank.run: {lower} has tokenizer.lowercase=true; reranking needs the same case"
    )
    assert (result.status, result.err.splitlines()[-1]) == (1, f"nmt: {text}")


def test_scores_need_a_run_that_has_not_seen_the_sentences(
    runs: tuple[Path, Path], tmp_path: Path, nmt: Run
) -> None:
    other = train(tmp_path, "de-en", seed=7, training=toy.ONE_UPDATE)
    result = nmt("evaluate", runs[0], *options(other))
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(f"nmt: {other}: its training data has ")
    assert "dev and test sentences of" in result.err
    reranked = shutil.copytree(runs[0], tmp_path / "reranked")
    values = yaml.safe_load((reranked / "config.yaml").read_text(encoding="utf-8"))
    values["decoding"]["rerank"] = {"run": str(other)}
    (reranked / "config.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    compared = nmt("analyze", runs[0], "--compare", reranked)
    assert (compared.status, compared.out, compared.err.splitlines()[-1:]) == (
        1,
        "",
        result.err.splitlines(),
    )
