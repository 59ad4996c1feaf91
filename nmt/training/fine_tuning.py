"""Fine-tuning: a training that starts with the weights of another run, whose vocabularies its data was prepared with."""

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from nmt.config.schema import Config
from nmt.errors import CheckpointError, DataError
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.folder import find_checkpoint, find_run, load_vocabularies


@dataclass(frozen=True)
class Origin:
    """The weights to start with.

    Attributes:
        run: whose they are. checkpoint: its best.
        tensors: by the names of the parameters; of those that are tied, one is there.
    """

    run: Path
    checkpoint: str
    tensors: dict[str, torch.Tensor]


@dataclass(frozen=True)
class Reused:
    """What of a model came from elsewhere: parameters, counted one by one, and the names of those that are new."""

    origin: Origin
    count: int
    total: int
    new: tuple[str, ...]

    def __str__(self) -> str:
        new = f"; new: {', '.join(self.new)}" if self.new else ""
        share = 100 * self.count / self.total
        counts = f"{self.count:,} of {self.total:,} parameters ({share:.1f} %){new}"
        return f"starts from {self.origin.run}, {self.origin.checkpoint}: {counts}"


def load_origin(config: Config) -> Origin | None:
    """The weights of the run that the configuration starts from, if it names one.

    Raises:
        CheckpointError: it is no run, or has no checkpoint that can be read.
        DataError: it has other vocabularies than the prepared data.
    """
    run = config.training.start_from
    if run is None:
        return None
    checkpoint = find_checkpoint(find_run(run))
    if load_vocabularies(run) != load_vocabularies(config.prepared_folder):
        raise DataError(
            f"training.start_from: {run} has other vocabularies than {config.prepared_folder}; "
            f"prepare it with vocabulary.like: {run}"
        )
    try:
        return Origin(run, checkpoint.name, load_file(checkpoint / MODEL_FILE))
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{checkpoint / MODEL_FILE}: cannot be loaded ({error})") from None


@torch.no_grad()
def start_with(origin: Origin, model: Seq2Seq) -> Reused:
    """Copy the parameters that have the same name and shape into `model`; the others stay as they are.

    Raises:
        CheckpointError: there are none.
    """
    sizes = {id(parameter): parameter.numel() for parameter in model.parameters()}
    reused: set[int] = set()
    for name, parameter in model.named_parameters(remove_duplicate=False):
        tensor = origin.tensors.get(name)
        if tensor is not None and tensor.shape == parameter.shape:
            parameter.copy_(tensor)
            reused.add(id(parameter))
    if not reused:
        raise CheckpointError(f"training.start_from: {origin.run} has no weights of the shapes that this model has")
    new = tuple(name for name, parameter in model.named_parameters() if id(parameter) not in reused)
    return Reused(origin, sum(sizes[one] for one in reused), sum(sizes.values()), new)
