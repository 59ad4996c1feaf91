"""Minimum Bayes risk decoding: similarities and expected utility against loops with sacrebleu.
Reranking with a model of the opposite direction: the equation, and the errors of users.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.config.schema import DecodingConfig
from nmt.data.corpus import read_sentences
from nmt.decoding.forced import score_pairs
from nmt.decoding.search import search
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.extras.ranking.keys import Utility
from nmt.extras.ranking.mbr import UTILITIES, pairwise_chrf, rank_by_expected_utility
from nmt.extras.ranking.ranker import Ranking
from nmt.files import read_json
from nmt.run.load import load_translator
from tests import toy
from tests.conftest import Run
from tests.decoding.test_translator import make_translator, outputs

SACREBLEU = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}


def candidate(text: str, log_prob: float, *, complete: bool = True) -> Translation:
    return Translation("source", text, log_prob=log_prob, complete=complete)


# Few letters, so that texts share long n-grams; digits, marks and entities, which tokenizer 13a
# treats in its own way.
similar_texts = st.text("ab Ä .,-1", max_size=25)
any_texts = st.text(max_size=8) | st.sampled_from(
    ["&quot;a&amp;b&lt;", "a <skipped> b", "a\u00a0b\n", "\ud83d", "𝄞𝄞"]
)
lists_of_texts = st.lists(similar_texts | any_texts, min_size=1, max_size=6)

SENTENCES = [
    "Kluge Leute lernen aus Unfällen.",
    "Intelligente Leute lernen durch Unfälle Unfälle.",
    "Die klugen Leute lernen aus den Unfällen, sagt er.",
    "la la la la la la la la la",
    "la",
    "",
    "x" * 700,
]


@pytest.mark.parametrize("utility", UTILITIES)
@example(texts=SENTENCES)
@given(texts=lists_of_texts)
def test_all_pairs_as_in_sacrebleu(utility: Utility, texts: list[str]) -> None:
    score = SACREBLEU[utility].sentence_score
    expected = [[score(text, [reference]).score for reference in texts] for text in texts]
    np.testing.assert_allclose(UTILITIES[utility](texts), expected, rtol=0, atol=1e-9)


candidates_of_a_sentence = st.lists(
    st.builds(
        candidate,
        st.text("ab .", max_size=9),
        st.floats(-9, 0),
        complete=st.sampled_from([True, True, True, False]),
    ),
    min_size=1,
    max_size=7,
)


@given(
    candidates_of_a_sentence,
    st.sampled_from(["chrf", "bleu"]),
    st.sampled_from([0.5, 1.0, 4.0]),
)
def test_expected_utility(
    translations: list[Translation], utility: str, temperature: float
) -> None:
    options = DecodingConfig.model_validate(
        {"method": "mbr", "temperature": temperature, "mbr": {"utility": utility}}
    )
    ranked = rank_by_expected_utility(translations, options)
    kept = [one for one in translations if one.complete] or translations
    weights = [exp(one.log_prob / temperature) for one in kept]
    expected = {
        one.text: sum(
            weight * SACREBLEU[utility].sentence_score(one.text, [other.text]).score
            for weight, other in zip(weights, kept, strict=True)
        )
        / sum(weights)
        for one in kept
    }
    assert {one.text: one.score for one in ranked} == pytest.approx(expected, abs=1e-5)
    assert len(ranked) == len(expected)
    order = [(-one.score, -one.log_prob) for one in ranked]
    assert order == sorted(order)
    for one in ranked:
        assert one.log_prob == max(other.log_prob for other in kept if other.text == one.text)


def test_candidates_are_those_of_the_search() -> None:
    translator = make_translator("words", method="mbr", beam=6, replace_unknown=False)
    translator.rankers = [Ranking(translator.options, None)]
    (source,) = (
        translator.src_vocabulary.ids(tokens)
        for tokens in translator.src_tokenizer.split_all(["a b a b"])
    )
    plain = make_translator("words", beam=6)
    (hypotheses,) = search(plain.model, [source], plain.options, n_best=6)
    texts = {
        plain.tgt_tokenizer.join(plain.tgt_vocabulary.tokens(one.ids))
        for one in hypotheses
        if one.complete
    }
    (ranked,) = translator.translate_n_best(["a b a b"], 6)
    assert {one.text for one in ranked} == texts
    assert len(texts) > 1
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
    assert outputs(translator.translate_n_best(["a b a b"], 2)[0]) == outputs(ranked[:2])
    rows = len(ranked[0].tokens) + ranked[0].complete
    assert ranked[0].attention.shape == (rows, 5)
    assert sum(ranked[0].token_log_probs) == pytest.approx(ranked[0].log_prob, abs=1e-5)


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
    return load_translator(runs[0], overrides=keys)


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
        nmt.prints("translate", "--run", forward, *options(path), SENTENCE)
        for path in (backward, tmp_path / "de-en.nmt")
    )
    assert with_bundle == translated
    printed = nmt.prints("evaluate", forward, *options(backward, "--metric", "BLEU"))
    assert f"decoding.rerank.run={backward}" in printed
    (stored,) = (forward / "evaluation").glob("test-*.json")
    assert read_json(stored)["provenance"]["rerank"]["model"]["sha256"]


def test_a_run_of_the_same_direction_or_another_case_is_refused(
    runs: tuple[Path, Path], tmp_path: Path, nmt: Run
) -> None:
    text = (
        f"nmt: decoding.rerank.run: {runs[0]} translates en-de; reranking needs a run for de-en\n"
    )
    nmt.refuses(text, "translate", "--run", runs[0], *options(runs[0]), SENTENCE)
    lower = shutil.copytree(runs[1], tmp_path / "lower")
    toy.replace(lower / "config.yaml", "lowercase: false", "lowercase: true")
    text = "has tokenizer.lowercase=true; reranking needs the same case\n"
    command = ("translate", "--run", runs[0], *options(lower), SENTENCE)
    nmt.refuses(f"nmt: decoding.rerank.run: {lower} {text}", *command)


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
