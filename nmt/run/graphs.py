"""The graphs of a checkpoint, with which it translates on a CPU.

graphs-int8/  or  graphs-float32/   in the folder of the checkpoint
    encoder.onnx  step.onnx  output.onnx  [lexicon.safetensors]  [check.onnx]  graphs.json

`graphs.json` names the weights of which they were made, and has the SHA-256 of each file. Graphs
that are missing, or belong to other weights, are made again; only that needs torch.
"""

import hashlib
import shutil
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.config.schema import Precision
from nmt.decoding.model import TranslationModel
from nmt.decoding.onnx_model import CHECK, FILES, OnnxModel, computes_exactly
from nmt.errors import CheckpointError, NmtWarning, pass_on_lack_of_memory
from nmt.files import new_folder, read_checksums, read_json, sha256_of, write_json
from nmt.model.lexicon import LEXICON
from nmt.run.checkpoint import MODEL_FILE

SUMMARY, GRAPHS_FOLDERS = "graphs.json", "graphs-*"
MAX_BYTES = 1 << 31  # of a file
GRAPH_NAMES = *FILES, LEXICON, CHECK, SUMMARY
EXTERNAL = b"location"  # in a graph: the values of a tensor are in another file, which is refused


def load_graphs(run: Path, checkpoint: Path, precision: Precision) -> TranslationModel:
    """The model of a checkpoint, for a CPU; its graphs are made if there are none of its weights.

    Raises:
        CheckpointError: graphs or weights are damaged or missing.
    """
    folder, has_weights = graphs_folder(checkpoint, precision), (checkpoint / MODEL_FILE).exists()
    summary = _read_summary(folder)
    if has_weights and summary.get("model") != weights_digest(checkpoint):
        warnings.warn(
            f"{checkpoint}: makes the graphs that translating needs", NmtWarning, stacklevel=2
        )
        return make_graphs(run, checkpoint, precision)
    if not summary:
        raise CheckpointError(
            f"{checkpoint}: has neither weights nor graphs for decoding.precision={precision}; "
            "copy or export the run again, or set another precision"
        )
    return _load_files(run, checkpoint, read_graphs(folder))


def make_graphs(run: Path, checkpoint: Path, precision: Precision) -> TranslationModel:
    """Make the graphs of a checkpoint, and write them, if the run can be written.

    Returns:
        the model; that of torch, if it cannot be written as graphs.

    Raises:
        CheckpointError: the weights are damaged or missing.
    """
    # These import torch, which takes a second.
    from nmt.decoding.torch_model import TorchModel, graphs_of
    from nmt.run.weights import load_model

    model, digest = load_model(run, checkpoint).eval(), weights_digest(checkpoint)
    files = graphs_of(model, precision)
    if files is None:
        return TorchModel(model)
    folder = graphs_folder(checkpoint, precision)
    with suppress(OSError):
        shutil.rmtree(folder, ignore_errors=True)  # of other weights
        with new_folder(folder) as temporary:
            for name, content in files.items():
                (temporary / name).write_bytes(content)
            digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
            write_json(
                temporary / SUMMARY,
                {"nmt": __version__, "model": digest, "sha256": digests},
                indent=1,
            )
    return _load_files(run, checkpoint, files)


def _load_files(run: Path, checkpoint: Path, files: Mapping[str, bytes]) -> TranslationModel:
    """The model of these graphs, or that in float32 where 8-bit products are not exact."""
    if CHECK in files and not computes_exactly(files[CHECK]):
        warnings.warn(
            "computes in float32: on this processor, sums of 8-bit products overflow",
            NmtWarning,
            stacklevel=2,
        )
        return load_graphs(run, checkpoint, "float32")
    return OnnxModel(files)


def read_graphs(folder: Path) -> dict[str, bytes]:
    """The contents of the files in a folder of graphs, by name.

    Raises:
        CheckpointError: one is missing or damaged.
    """
    digests: Mapping[str, str] = _read_summary(folder).get("sha256", {})
    return {name: _read(folder / name, digest) for name, digest in digests.items()}


def graphs_folder(checkpoint: Path, precision: Precision) -> Path:
    """The folder of the graphs of a checkpoint."""
    return checkpoint / f"graphs-{precision}"


def weights_digest(checkpoint: Path) -> str:
    """The SHA-256 of the weights of a checkpoint, or of those that its graphs were made of."""
    path = checkpoint / MODEL_FILE
    if path.exists():
        return (read_checksums(checkpoint).get(MODEL_FILE) or [sha256_of(path)])[0]
    summaries = map(_read_summary, sorted(checkpoint.glob(GRAPHS_FOLDERS)))
    return next((str(summary["model"]) for summary in summaries if summary), "")


def _read_summary(folder: Path) -> dict[str, Any]:
    """The content of `graphs.json`; empty if there is none.

    Raises:
        CheckpointError: it is damaged.
    """
    path = folder / SUMMARY
    if not path.exists():
        return {}
    try:
        summary = read_json(path)
        names = summary["sha256"].keys()
        if {*FILES} <= names <= {*FILES, LEXICON, CHECK} and isinstance(summary["model"], str):
            return summary
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        pass_on_lack_of_memory(error)
    raise CheckpointError(f"{path}: damaged; delete its folder, and nmt makes it again")


def _read(path: Path, digest: str) -> bytes:
    """A file of graphs, whose size and content are checked.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    remedy = f"delete the folder {path.parent.name}, and nmt makes it again from the weights"
    try:
        if path.stat().st_size <= MAX_BYTES:
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() == digest and EXTERNAL not in content:
                return content
    except OSError as error:
        pass_on_lack_of_memory(error)
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    raise CheckpointError(f"{path}: damaged, its content has changed since nmt wrote it; {remedy}")
