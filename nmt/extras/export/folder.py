"""A run folder that translates without torch: it has graphs in place of the weights.

what a bundle has, but for the weights   checkpoints/NAME/graphs-PRECISION/   requirements.txt
"""

import re
import shutil
import warnings
from collections.abc import Sequence
from importlib.metadata import requires
from pathlib import Path

from nmt.config.load import load_config
from nmt.config.schema import Config
from nmt.decoding.onnx_model import OnnxModel
from nmt.errors import ConfigError
from nmt.extras.share.bundle import (
    BEST_FILE,
    KEYS_FILE,
    NEIGHBORS_FILE,
    pointer_to,
    run_files,
    uses_neighbors,
)
from nmt.files import CHECKSUMS_FILE, new_folder, write_json, write_text
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.folder import CONFIG_FILE, load_run_config, write_run_config
from nmt.run.graphs import graphs_folder, load_graphs
from nmt.run.load import build_translator, unchanged

WEIGHTS = (MODEL_FILE, CHECKSUMS_FILE)
REQUIREMENTS_FILE = "requirements.txt"
# The packages of nmt that no translation needs, and those that some need.
UNUSED = ("matplotlib", "onnx", "pooch", "requests", "torch")
OF_TOKENIZERS = {"words": "spacy", "bpe": "sentencepiece", "unigram": "sentencepiece"}
OF_METHODS = {"mbr": "sacrebleu"}


def write_folder(run: Path, checkpoint: Path, output: Path, overrides: Sequence[str]) -> None:
    """Write the run with one of its checkpoints into the new folder `output`.

    Args:
        overrides: `decoding.key=value`.

    Raises:
        CheckpointError: the checkpoint cannot be read, or the run was changed meanwhile.
        ConfigError: an override is invalid, or graphs cannot express the model.
        DataError: a file of the run is missing or damaged.
    """
    with new_folder(output) as folder, unchanged([(run, checkpoint)]):
        # What cannot translate is not written.
        build_translator([(run, checkpoint)], device="cpu", overrides=overrides)
        for file in run_files(run):
            _copy(file, folder / file.relative_to(run))
        if overrides:
            write_run_config(folder, load_config(folder / CONFIG_FILE, overrides))
        if uses_neighbors(folder):
            for name in (NEIGHBORS_FILE, KEYS_FILE):
                _copy(run / name, folder / name)
        target, config = folder / "checkpoints" / checkpoint.name, load_run_config(folder)
        _write_graphs(folder, checkpoint, target, config)
        write_json(folder / BEST_FILE, pointer_to(checkpoint.name))
        write_text(folder / REQUIREMENTS_FILE, "\n".join([*requirements(config), ""]))


def _write_graphs(folder: Path, checkpoint: Path, target: Path, config: Config) -> None:
    """Raises: ConfigError if graphs cannot express the model."""
    precision = config.decoding.cpu_precision
    graphs = graphs_folder(checkpoint, precision)
    if graphs.exists():
        shutil.copytree(graphs, target / graphs.name)
    for name in WEIGHTS:
        _copy(checkpoint / name, target / name)
    with warnings.catch_warnings(action="ignore"):  # they are about this machine
        model = load_graphs(folder, target, precision)  # which makes those that are not there
    if not isinstance(model, OnnxModel):
        raise ConfigError(f"{checkpoint}: graphs cannot express its model; it needs torch")
    for name in WEIGHTS:
        (target / name).unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a file, if there is one."""
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def requirements(config: Config) -> list[str]:
    """The packages that translating with this configuration imports, beside nmt."""
    used = OF_TOKENIZERS.get(config.tokenizer.kind), OF_METHODS.get(config.decoding.method)
    unused = {*UNUSED, *OF_TOKENIZERS.values(), *OF_METHODS.values()} - {*used}
    needed = [each for each in requires("nmt") or () if "extra ==" not in each]
    return [each for each in needed if re.split(r"[^\w-]", each)[0].lower() not in unused]
