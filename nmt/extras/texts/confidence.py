"""The confidence in a translation: how probable it is that the translation is good."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp, log1p
from pathlib import Path
from typing import Any

from nmt.config.schema import Config
from nmt.decoding.translator import Translation
from nmt.errors import DataError
from nmt.files import read_json
from nmt.run.folder import find_checkpoint

CONFIDENCE_FILE = "confidence.json"


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
        return round(1 / (1 + exp(-total)), 3)


def read(path: Path) -> tuple[Confidence, str, str]:
    """The confidence, the checkpoint that it was fitted to, and how search found the translations.

    Raises:
        DataError: the file is damaged.
    """
    try:
        record = read_json(path)
        confidence = Confidence(record["constant"], record["features"])
        confidence(Translation(""))
        return confidence, record["checkpoint"], record["search"]
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError):
        advice = f"`nmt runs calibrate {path.parent}` writes it again"
        raise DataError(f"{path}: damaged; {advice}") from None


def load(run: Path, config: Config) -> Confidence | None:
    """The confidence of a run; None if it was fitted to another checkpoint, or to samples and the
    run searches, or the reverse.

    Raises:
        DataError: the file is damaged.
    """
    confidence, *fitted_to = read(run / CONFIDENCE_FILE)
    fits = fitted_to == [find_checkpoint(run).name, config.decoding.search]
    return confidence if fits else None


def marked_for_reading(translation: Translation, least: float) -> Translation:
    """With the fact whether a person should read it, and if so, with a warning."""
    is_low = translation.facts["confidence"] < least
    warning = f"the confidence is below {least:g}; a person should read the translation"
    return replace(
        translation,
        facts={**translation.facts, "read": is_low},
        warnings=(*translation.warnings, *([warning] if is_low else [])),
    )


def of_sentences(sentences: Sequence[Translation]) -> dict[str, Any]:
    """The facts of a text about its confidence, from those of its sentences: the lowest one."""
    found = [each.facts for each in sentences if "confidence" in each.facts]
    lowest = min(found, key=lambda facts: facts["confidence"], default={})
    return {key: value for key, value in lowest.items() if key in ("confidence", "read")}


def files(run: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """The name of the file, if the run has it, and the function that reads it."""
    if (path := run / CONFIDENCE_FILE).exists():
        yield CONFIDENCE_FILE, partial(read, path)
