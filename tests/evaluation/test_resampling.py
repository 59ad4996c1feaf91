"""nmt.evaluation.resampling: blocks give the same numbers as all sentences at once."""

import numpy as np
import pytest

from nmt.evaluation import resampling
from nmt.evaluation.resampling import collect_statistics
from nmt.evaluation.scores import METRICS, build_metric
from tests.extras.analysis.test_significance import sentences, spoiled


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], list[str], list[list[str]]]:
    """Two systems and two streams of references; 71 sentences are not a multiple of any block of
    random bits.
    """
    references = sentences(71, 0)
    return (
        spoiled(references, 1, 0.35),
        spoiled(references, 2, 0.35),
        [references, spoiled(references, 3, 0.2)],
    )


@pytest.mark.parametrize("name", METRICS)
def test_statistics_do_not_depend_on_blocks(
    texts: tuple[list[str], list[str], list[list[str]]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _, references = texts
    monkeypatch.setattr(resampling, "BLOCK_SENTENCES", 10)
    metric = build_metric(name)
    statistics = collect_statistics(metric, ours, references)
    assert len(statistics.rows) == 71
    assert statistics.score == metric.corpus_score(ours, references).score
    assert "nrefs:2" in str(metric.get_signature())


@pytest.mark.parametrize("name", METRICS)
def test_bootstrap_samples_equal_those_of_one_draw(
    texts: tuple[list[str], list[str], list[list[str]]], name: str
) -> None:
    ours, _, references = texts
    statistics = collect_statistics(build_metric(name), ours, references)
    drawn = np.random.default_rng(3).choice(71, size=(50, 71))
    sums = np.array(statistics.rows, np.float32)[drawn].sum(1)
    assert statistics.bootstrap_scores(50, 3) == [
        statistics.metric._compute_score_from_stats(row).score for row in sums
    ]


@pytest.mark.parametrize("name", METRICS)
def test_random_swaps_equal_those_of_one_draw(
    texts: tuple[list[str], list[str], list[list[str]]], name: str
) -> None:
    ours, theirs, references = texts
    one, two = (
        collect_statistics(build_metric(name), outputs, references) for outputs in (ours, theirs)
    )
    n_trials = 2 * resampling.BLOCK_TRIALS + 7
    taken = np.random.default_rng(3).integers(2, size=(n_trials, 71), dtype=bool)
    for found, chosen in zip(one.randomized_scores(two, n_trials, 3), (taken, ~taken), strict=True):
        picked = np.where(
            chosen[:, :, None], np.array(two.rows)[None], np.array(one.rows)[None]
        ).sum(1)
        expected = [one.metric._compute_score_from_stats(row).score for row in picked.astype(float)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
