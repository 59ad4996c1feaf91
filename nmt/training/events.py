"""What happens in a training, in order: `nmt train` prints these events, `nmt.train_events` hands
them to Python programs.
"""

from dataclasses import dataclass
from pathlib import Path

from nmt.run.progress import Progress
from nmt.training.validation import Validation


@dataclass(frozen=True)
class BeginEvent:
    """The training begins, or continues.

    Attributes:
        folder: the run folder.
        n_parameters: of the model. n_pairs: in the training data.
        device: where it computes, such as cpu or cuda:0. precision: float32 or bfloat16.
        n_threads: of the CPU, in each process.
        n_processes: 1 without torchrun.
        step: updates so far.
    """

    folder: Path
    n_parameters: int
    n_pairs: int
    device: str
    precision: str
    n_threads: int
    n_processes: int
    step: int


@dataclass(frozen=True)
class MessageEvent:
    """A line of text for the user."""

    text: str
    is_warning: bool = False


@dataclass(frozen=True)
class StepEvent:
    """An update of the weights.

    Attributes:
        step, epoch, batch: all counted from 1. A large epoch is planned in parts: batch and
            n_batches are those of the part.
        ends_epoch: whether it is the last update of its epoch.
        fraction: the finished part of the training, 0 to 1. Early stopping is not foreseen.
        loss: nats per target token since the last training line of the journal, with label
            smoothing.
        perplexity: over the same tokens, without label smoothing. tokens_per_second: target tokens,
            over the same time.
        learning_rate, forcing_ratio, gradient_norm: of this update.
    """

    step: int
    epoch: int
    batch: int
    n_batches: int
    ends_epoch: bool
    fraction: float
    loss: float
    perplexity: float
    tokens_per_second: float
    learning_rate: float
    forcing_ratio: float
    gradient_norm: float

    @property
    def figures(self) -> dict[str, float]:
        """For the journal and TensorBoard."""
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "tokens_per_second": self.tokens_per_second,
            "learning_rate": self.learning_rate,
            "forcing_ratio": self.forcing_ratio,
            "gradient_norm": self.gradient_norm,
        }


@dataclass(frozen=True)
class ValidationEvent:
    """A validation after update `step`, which took `seconds`."""

    step: int
    seconds: float
    result: Validation


@dataclass(frozen=True)
class CheckpointEvent:
    """A checkpoint was saved.

    Attributes:
        path: its folder.
        is_best: whether it is the best so far.
    """

    step: int
    path: Path
    is_best: bool


@dataclass(frozen=True)
class EndEvent:
    """The training is over. It is the last event; an error takes its place.

    Attributes:
        folder: the run folder.
        progress: that of the last checkpoint. Its `finished` is the reason.
    """

    folder: Path
    progress: Progress


Event = BeginEvent | MessageEvent | StepEvent | ValidationEvent | CheckpointEvent | EndEvent
