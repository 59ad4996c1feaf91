"""The confidence in a translation: how probable it is that the translation is good."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import exp, isfinite, log1p
from pathlib import Path

from nmt.config.schema import DecodingConfig
from nmt.decoding.translation import Translation
from nmt.errors import DataError
from nmt.files import read_json
from nmt.run.folder import CONFIDENCE_FILE


def features(translation: Translation) -> dict[str, float]:
    """What the confidence is computed from: the mean log-probability of the tokens and <eos>, in
    nats, and log(1 + tokens of the source).
    """
    log_probs = translation.token_log_probs
    return {
        "mean_log_prob": sum(log_probs) / max(len(log_probs), 1),
        "log_src_length": log1p(len(translation.src_tokens)),
    }


@dataclass(frozen=True)
class Confidence:
    """The share of good translations among those with such features: a logistic regression.

    Attributes:
        constant: of the regression.
        features: of each the weight, and the lowest and highest value that it was fitted to. A
            value beyond counts as the nearest of the two.
    """

    constant: float
    features: Mapping[str, Sequence[float]]

    def __call__(self, translation: Translation) -> float:
        """Between 0 and 1, with three digits."""
        total = self.constant
        for name, value in features(translation).items():
            weight, low, high = self.features[name]
            total += weight * min(max(value, low), high)
        return round(1 / (1 + exp(min(-total, 700))), 3)


def read_confidence(path: Path) -> tuple[Confidence, str, str]:
    """The confidence, the checkpoint that it was fitted to, and how search found the translations.

    Raises:
        DataError: the file is damaged.
    """
    try:
        record = read_json(path)
        confidence = Confidence(record["constant"], record["features"])
        numbers = confidence.constant, *chain(*confidence.features.values())
        if not all(map(isfinite, numbers)):
            raise ValueError("a number is not finite")
        confidence(Translation(""))
        return confidence, record["checkpoint"], record["search"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        raise DataError(
            f"{path}: damaged; `nmt runs calibrate {path.parent}` writes it again"
        ) from None


def load_confidence(run: Path, checkpoint: Path, options: DecodingConfig) -> Confidence | None:
    """The confidence of a checkpoint of a run; None if it was fitted to another one, or to samples
    and the run searches, or the reverse.

    Raises:
        DataError: the file is damaged.
    """
    confidence, *fitted_to = read_confidence(run / CONFIDENCE_FILE)
    return confidence if fitted_to == [checkpoint.name, options.search] else None
