"""`nmt evaluate`: scores of a run, or of any file of translations."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nmt import __version__, runs
from nmt.errors import DataError
from nmt.files import write_text
from nmt.report.scores import Score, format_table, score
from nmt.sections import DeviceName
from nmt.text.corpus import read_lines
from nmt.training.checkpoint import read_progress

METRICS = ("BLEU", "chrF")
BOOTSTRAP = 1000  # resamples for the confidence intervals


@dataclass(frozen=True)
class Evaluation:
    """Scores, and what they are of.

    Attributes:
        subject: for the reader, in a few words.
        scores: cased and detokenised.
        lowercase: the same scores ignoring case, for a model that writes lower-case; else empty.
        details: run, step, split and so on, for machines.
    """

    subject: str
    scores: list[Score]
    lowercase: list[Score]
    details: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON knows them."""
        scores, lowercase = ([score.to_dict() for score in scores] for scores in (self.scores, self.lowercase))
        return {"scores": scores, "lowercase_scores": lowercase, **self.details}

    def to_table(self) -> str:
        """A table for the screen."""
        lines = [self.subject, format_table(self.scores)]
        if self.lowercase:
            lines += ["ignoring case, as the model writes lower-case", format_table(self.lowercase)]
        return "\n".join(lines)

    def shortfall(self, metric: str, least: float) -> str | None:
        """How far `metric` is below `least`, in words; None if it is not."""
        value = next(score.value for score in self.scores if score.name == metric)
        return f"{metric} {value:.2f} is below {least:g}, by {least - value:.2f}" if value < least else None


def run(
    folder: Path | None = None,
    *,
    split: Literal["dev", "test"] = "test",
    prepared: Path | None = None,
    device: DeviceName = "auto",
    beam: int | None = None,
) -> Evaluation:
    """Translate a split of the run's prepared data and score it; translations and scores are kept in the run's `evaluation/`.

    Args:
        prepared: where the prepared data is now, if it was moved.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        DataError: the prepared data is not there, or not what the run was trained on.
    """
    folder = runs.find(folder)
    config = runs.load_config(folder)
    prepared = prepared or config.prepared_folder
    runs.check_data(folder, prepared)
    sources, references = read_lines(prepared, split, "src"), read_lines(prepared, split, "tgt")
    checkpoint = runs.find_checkpoint(folder)
    step = read_progress(checkpoint).step
    translator = runs.load_translator(folder, checkpoint=checkpoint, device=device, beam=beam)
    hypotheses = [translation.text for translation in translator.translate(sources)]
    used = translator.options.beam
    details = {
        "run": str(folder),
        "step": step,
        "split": split,
        "beam": used,
        "length_penalty": translator.options.length_penalty,
        "sentences": len(references),
        "version": __version__,
    }
    subject = f"{folder}, step {step}, {split} split, {len(references):,} sentences, beam {used}"
    evaluation = _evaluate(subject, hypotheses, [references], details, lowercase=config.tokenizer.lowercase)
    _keep(folder / "evaluation" / f"{split}-step-{step:08d}-beam-{used}", hypotheses, evaluation)
    return evaluation


def run_files(hypotheses: Path, references: Sequence[Path]) -> Evaluation:
    """Score a file of translations, a line each, against one or more files of references.

    Raises:
        DataError: a file cannot be read, or the numbers of lines differ.
    """
    outputs, streams = _read_text(hypotheses), [_read_text(path) for path in references]
    for path, stream in zip(references, streams, strict=True):
        if len(stream) != len(outputs):
            raise DataError(f"{path} has {len(stream)} lines, but {hypotheses} has {len(outputs)}")
    details = {"hypotheses": str(hypotheses), "references": [str(path) for path in references], "sentences": len(outputs)}
    return _evaluate(f"{hypotheses}, {len(outputs):,} sentences", outputs, streams, details, lowercase=False)


def _evaluate(
    subject: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], details: dict[str, Any], *, lowercase: bool
) -> Evaluation:
    scores = score(hypotheses, references, METRICS, bootstrap=BOOTSTRAP)
    uncased = score(hypotheses, references, METRICS, lowercase=True, bootstrap=BOOTSTRAP) if lowercase else []
    return Evaluation(subject, scores, uncased, details)


def _read_text(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8") from None
    return text.removesuffix("\n").replace("\r\n", "\n").split("\n") if text else []


def _keep(stem: Path, hypotheses: Sequence[str], evaluation: Evaluation) -> None:
    """Write translations and scores; the scores are worth having even where the run cannot be written."""
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        write_text(stem.with_suffix(".txt"), "".join(f"{line}\n" for line in hypotheses))
        write_text(stem.with_suffix(".json"), json.dumps(evaluation.to_dict(), indent=2, ensure_ascii=False))
    except OSError as error:
        print(f"nmt: {stem.parent}: the scores are not kept there ({error.strerror})", file=sys.stderr)
