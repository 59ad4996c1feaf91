"""`nmt average`: the mean of the weights of a run's kept checkpoints, to translate with if it does better on the dev set."""

from pathlib import Path
from typing import Literal

import torch

from nmt.errors import CheckpointError
from nmt.run import folder as runs
from nmt.run.checkpoint import mean_weights
from nmt.run.journal import Journal
from nmt.training.validation import METRICS, Validator

Which = Literal["best", "last"]


def run(folder: Path | None = None, *, which: Which = "best", place: torch.device) -> str:
    """Average the best or the last checkpoints of a run (default: that trained last); what came of it, in a line.

    Args:
        place: where the dev set is translated.

    Raises:
        CheckpointError: there is no run, fewer than two checkpoints are kept, one cannot be read, or the average not be written.
        DataError: the run's prepared data is not there any more, or is not what it was trained on.
    """
    folder = runs.find(folder)
    config = runs.load_config(folder)
    checkpoints = runs.open_checkpoints(folder, config)
    kept = [one for one in checkpoints.kept(which) if one.checkpoint.startswith("step-")]
    if len(kept) < 2:
        number = "no checkpoint is" if not kept else "one checkpoint is"
        raise CheckpointError(f"{folder}: {number} kept as {which}; train with training.keep_{which} of 2 or more to average")
    runs.check_data(folder, config.prepared_folder)
    model = runs.build_model(folder, config)
    mean_weights([checkpoints.folder / one.checkpoint for one in kept], model)
    result = Validator(model.to(place).eval(), config, folder).validate()
    step, members = checkpoints.kept("last")[0].step, sorted(one.step for one in kept)
    Journal(folder / runs.JOURNAL).write("average", step, members=members, **result.figures)
    checkpoints.add_average(step, model, METRICS[config.training.metric](result))
    used = checkpoints.kept("best")[0].checkpoint.startswith("average-")
    figures = f"dev loss {result.loss:.3f}  BLEU {result.bleu:.2f}  chrF {result.chrf:.2f}"
    verdict = "better than each of them: used from now on" if used else "no better than the best of them, which stays in use"
    return f"average of steps {', '.join(map(str, members))}  {figures}: {verdict}"
