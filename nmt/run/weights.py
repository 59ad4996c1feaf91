"""The tensors of a checkpoint, written and read; and the model of a run, built and filled."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from safetensors.torch import load_model as fill
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode

from nmt.config.schema import Config
from nmt.errors import CheckpointError, pass_on_lack_of_memory
from nmt.model.lexical_bias import LexicalBias
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import (
    MODEL_FILE,
    OPTIMIZER_FILE,
    REMEDY,
    read_progress,
    reading,
)
from nmt.run.folder import CONFIG_FILE, load_run_config, load_vocabularies
from nmt.run.progress import Progress

MIN_MODEL_BYTES = 1 << 24
MAX_MODEL_FACTOR = 256  # the estimated size of a model, as a multiple of that of its weights file

# With these, torch and `nmt.model` draw the initial weights.
DRAWS = {
    nn.init.kaiming_uniform_,
    nn.init.normal_,
    nn.init.uniform_,
    Tensor.normal_,
    Tensor.uniform_,
}


def build_model(folder: Path, config: Config) -> Seq2Seq:
    """A model with initial weights, for the vocabularies in `folder`: a run or prepared data.

    Raises:
        CheckpointError: the configuration of a run describes a model that is much larger than its
            weights.
        DataError: a vocabulary is missing or damaged.
    """
    src, tgt = load_vocabularies(folder)
    # A rough estimate, before memory is reserved.
    sizes = [path.stat().st_size for path in folder.glob(f"checkpoints/*/{MODEL_FILE}")]
    model, encoder, decoder = config.model, config.model.encoder, config.model.decoder
    width = max(
        model.embedding_size,
        encoder.output_size,
        decoder.hidden_size,
        decoder.readout_size or 0,
        model.attention.size or 0,
    )
    n_rows = len(src) + len(tgt) + model.lexical_words
    n_layers = encoder.layers + decoder.layers + 1
    n_bytes = 4 * (n_rows * (width + model.lexical_bias) + 20 * n_layers * width**2)
    if sizes and n_bytes > MAX_MODEL_FACTOR * max(*sizes, MIN_MODEL_BYTES):
        raise CheckpointError(
            f"{folder / CONFIG_FILE}: does not fit the weights: it describes a model of about "
            f"{n_bytes / 1e6:,.0f} MB, but they have {max(sizes) / 1e6:,.1f}; copy the run again"
        )
    return Seq2Seq(config.model, len(src), len(tgt))


def load_model(run: Path, checkpoint: Path) -> Seq2Seq:
    """The model of a run with the weights of one of its checkpoints."""
    with WithoutDraws():
        model = build_model(run, load_run_config(run))
    load_weights(checkpoint, model)
    return model


class WithoutDraws(TorchFunctionMode):
    """Inside, a model gets no initial weights, for it will get others: to draw them, and to make
    matrices orthogonal, takes longer than to read the others.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.linalg.qr:  # of `orthogonal_`
            return args[0], args[0]
        if func in DRAWS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def save_training(model: nn.Module, optimizer: Optimizer, folder: Path) -> None:
    """Write what `load_training` fills from a checkpoint, but for the progress."""
    save_weights(model, folder / MODEL_FILE)
    # `<parameter>.exp_avg` and so on; the optimizer has the parameters in their order.
    names = [name for name, _ in model.named_parameters()]
    tensors = {
        f"{names[index]}.{entry}": torch.as_tensor(value)
        for index, entries in optimizer.state_dict()["state"].items()
        for entry, value in entries.items()
    }
    save_file(tensors, folder / OPTIMIZER_FILE)


def load_training(folder: Path, model: nn.Module, optimizer: Optimizer) -> Progress:
    """Fill model and optimizer from a checkpoint; returns its progress."""
    progress = read_progress(folder)
    load_weights(folder, model)
    load_optimizer(folder, model, optimizer)
    return progress


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights. Equal weights give equal files: tied parameters stand there once, under
    the first of their names, and the others are named nowhere, as safetensors has no order there.
    """
    names: dict[int, str] = {}
    tensors = dict(sorted(model.state_dict(keep_vars=True).items()))
    for name, tensor in tensors.items():
        names.setdefault(id(tensor), name)
    save_file({name: tensors[name].detach().contiguous() for name in names.values()}, path)


def load_weights(folder: Path, model: nn.Module) -> None:
    """Fill `model` from a checkpoint.

    Raises:
        CheckpointError: the weights are missing or damaged, or belong to another model.
    """
    path = folder / MODEL_FILE
    with reading(path):
        try:
            missing, unexpected = fill(model, str(path), strict=False)
        except RuntimeError as error:  # shapes differ
            pass_on_lack_of_memory(error)
            missing, unexpected = ["?"], []
    if missing or unexpected:
        raise CheckpointError(
            f"{path}: does not fit the configuration and the vocabularies of the run; was one "
            "of them changed?"
        )
    if not all(module.is_valid() for module in model.modules() if isinstance(module, LexicalBias)):
        raise CheckpointError(
            f"{path}: its lexicon has numbers outside of the vocabularies; {REMEDY}"
        )


def load_optimizer(folder: Path, model: nn.Module, optimizer: Optimizer) -> None:
    """Fill the state of `optimizer` from a checkpoint.

    Raises:
        CheckpointError: the state is missing or damaged, or belongs to another model.
    """
    path = folder / OPTIMIZER_FILE
    names = [name for name, _ in model.named_parameters()]
    state: dict[int, dict[str, torch.Tensor]] = {}
    with reading(path):
        tensors = load_file(path)
    for key, tensor in tensors.items():
        name, _, entry = key.rpartition(".")
        if name not in names:
            raise CheckpointError(f"{path}: holds the state of another model")
        state.setdefault(names.index(name), {})[entry] = tensor
    # All matrices have the same entries, and all vectors.
    kinds = {
        (parameter.dim() > 1, frozenset(state[index]))
        for index, parameter in enumerate(model.parameters())
        if index in state
    }
    if len(kinds) > len({is_matrix for is_matrix, _ in kinds}):
        raise CheckpointError(f"{path}: damaged, the name of an entry has changed; {REMEDY}")
    optimizer.load_state_dict(
        {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    )
