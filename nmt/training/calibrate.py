"""Fits the confidence of a run to the dev set. A training ends with it."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config.parts import DeviceName
from nmt.data.corpus import read_sentences
from nmt.errors import DataError
from nmt.evaluation.results import read_split
from nmt.evaluation.scores import sentence_chrf
from nmt.files import explain_write_errors, write_json
from nmt.run.confidence import features
from nmt.run.folder import CONFIDENCE_FILE, check_same_data, find_checkpoint
from nmt.run.load import build_translator

Values = NDArray[np.float64]
GOOD_CHRF = 60  # of a good translation, at least
MIN_SENTENCES, MAX_SENTENCES = 200, 2000
MAX_AFTER_TRAINING = 500  # sentences: enough for an error of 0.03
RIDGE, STEPS, PARTS, BINS = 1.0, 30, 5, 10


def calibrate(
    run: Path,
    prepared: Path,
    device: DeviceName = "auto",
    max_sentences: int = MAX_SENTENCES,
) -> dict[str, Any]:
    """Translate dev sentences as the run decodes, fit the confidence, and write it into the run.

    Returns:
        what was written: the weights, and how well they fit. `curve` has a row for each bin of
        confidences: its lower end, sentences, mean confidence, and share of good translations.

    Raises:
        CheckpointError: the run cannot be read.
        DataError: the prepared data is missing, is not that of the run, or has too few dev pairs.
    """
    check_same_data(run, prepared)
    checkpoint = find_checkpoint(run)
    text = read_split(prepared, "dev")
    if len(text) < MIN_SENTENCES:
        raise DataError(
            f"{prepared}: has {len(text)} dev pairs; a confidence needs at least {MIN_SENTENCES}"
        )
    chosen = np.linspace(0, len(text) - 1, min(len(text), max_sentences)).astype(int)
    translator = build_translator([(run, checkpoint)], device=device)
    translations = translator.translate([(text.sources or [])[i] for i in chosen])
    references = [text.references[0][i] for i in chosen]
    good = np.array(sentence_chrf([each.text for each in translations], [references])) >= GOOD_CHRF
    rows = [features(each) for each in translations]
    x = np.array([[*row.values()] for row in rows])
    constant, weights = fit(x, good)
    ranges = np.stack([weights, x.min(0), x.max(0)], 1).tolist()
    record = {
        "constant": constant,
        "features": dict(zip(rows[0], ranges, strict=True)),
        "checkpoint": checkpoint.name,
        "search": translator.options.search,
        "method": translator.options.method,
        "beam": translator.options.beam,
        "sentences": len(good),
        "good": good.mean(),
        **fit_of_held_out(x, good),
    }
    with explain_write_errors(run / CONFIDENCE_FILE):
        write_json(run / CONFIDENCE_FILE, record, indent=2)
    return record


def fit_of_held_out(x: Values, good: NDArray[np.bool_]) -> dict[str, Any]:
    """How well the confidences of a part of the sentences fit, if the others determine the weights:
    the expected calibration error, the area under the ROC curve, and the curve.
    """
    part, held_out = np.arange(len(x)) % PARTS, np.zeros(len(x))
    for i in range(PARTS):
        held_out[part == i] = probabilities(x[part == i], *fit(x[part != i], good[part != i]))
    bins = np.minimum((held_out * BINS).astype(int), BINS - 1)
    curve = [
        (i / BINS, int((bins == i).sum()), held_out[bins == i].mean(), good[bins == i].mean())
        for i in np.unique(bins).tolist()
    ]
    return {
        "ece": sum(n * abs(mean - share) for _, n, mean, share in curve) / len(good),
        "auc": auc(held_out, good),
        "curve": curve,
    }


def fit(x: Values, good: NDArray[np.bool_]) -> tuple[float, Values]:
    """A logistic regression, by Newton's method. x: [N, F]. Returns the constant and F weights."""
    mean, scale = x.mean(0), x.std(0) + 1e-9
    scaled = np.column_stack([np.ones(len(x)), (x - mean) / scale])
    weights = np.zeros(scaled.shape[1])
    for _ in range(STEPS):
        p = probabilities(scaled, 0.0, weights)
        gradient = scaled.T @ (p - good) + RIDGE * weights
        curvature = (scaled.T * (p * (1 - p))) @ scaled + RIDGE * np.eye(len(weights))
        weights -= np.linalg.solve(curvature, gradient)
    slopes = weights[1:] / scale
    return float(weights[0] - slopes @ mean), slopes


def probabilities(x: Values, constant: float, weights: Values) -> Values:
    return 1 / (1 + np.exp(-(constant + x @ weights)))


def auc(confidences: Values, good: NDArray[np.bool_]) -> float:
    """How probable it is that a good translation has a higher confidence than a bad one; 0.5 is
    chance.
    """
    pairs = confidences[good][:, None] - confidences[~good]
    return float((np.sign(pairs).mean() + 1) / 2) if pairs.size else 0.5


def calibrate_after_training(run: Path, prepared: Path, device: DeviceName) -> None:
    """Calibrate a run if it has enough dev pairs. Raises: NmtError: the run cannot translate."""
    if len(read_sentences(prepared, "dev", "src")) >= MIN_SENTENCES:
        calibrate(run, prepared, device, MAX_AFTER_TRAINING)
