"""From run folders to a translator: loads models, tokenizers and vocabularies, and puts them
together with what extras add.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from nmt.config.parts import DeviceName
from nmt.config.schema import DecodingConfig
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.model import TranslationModel
from nmt.decoding.onnx_model import OnnxModel
from nmt.decoding.translator import Translator, check_n_best
from nmt.errors import CheckpointError, ConfigError
from nmt.plugins import hooks
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.folder import (
    CONFIG_FILE,
    find_checkpoint,
    find_run,
    further_files,
    holds_run,
    load_run_config,
    load_tokenizers,
    load_vocabularies,
)
from nmt.run.graphs import GRAPHS_FOLDERS, load_graphs
from nmt.text.tokenizers import SIDES, model_path


def find_run_and_checkpoint(path: Path | None) -> tuple[Path, Path]:
    """The run and the checkpoint to translate with.

    Args:
        path: a run (its best checkpoint is used), or one of its checkpoints; default: the newest
            run.

    Raises:
        CheckpointError: `path` is neither.
    """
    if (
        path is not None
        and ((path / MODEL_FILE).exists() or any(path.glob(GRAPHS_FOLDERS)))
        and holds_run(run := path.resolve().parent.parent)
    ):
        return run, path
    run = find_run(path)
    return run, find_checkpoint(run)


@contextmanager
def opened(path: Path | None) -> Iterator[tuple[Path, Path]]:
    """As `find_run_and_checkpoint`, but `path` may also be a run packed into a file, whose files
    exist until the block ends.
    """
    with unpacked(path) as folder:
        yield find_run_and_checkpoint(folder)


@contextmanager
def unpacked(path: Path | None) -> Iterator[Path | None]:
    """The run folder that a file holds, until the block ends; `path` itself if it is no file."""
    with ExitStack() as stack:
        for unpack in hooks("archive") if path is not None and path.is_file() else ():
            path = stack.enter_context(unpack(path))
        yield path


@contextmanager
def unchanged(members: Sequence[tuple[Path, Path]]) -> Iterator[None]:
    """For a block that reads runs: parts of an old and a new run must not be put together.

    Raises:
        CheckpointError: a file was replaced meanwhile.
    """
    before = _versions(members)
    yield
    for path, version in _versions(members).items():
        # By a training; the weights have been read.
        is_rotated = not version and path.name == MODEL_FILE
        if version != before[path] and not is_rotated:
            raise CheckpointError(
                f"{path}: was changed while the run was loaded; repeat the command"
            )


def _versions(members: Sequence[tuple[Path, Path]]) -> dict[Path, tuple[int, ...]]:
    """What differs as soon as a file that translating needs is written again."""
    tools = (f"{side}.{ending}" for side in SIDES for ending in ("vocab.txt", "spm.model"))
    names = CONFIG_FILE, *tools, *further_files()
    paths = [run / name for run, _ in members for name in names]
    versions: dict[Path, tuple[int, ...]] = {}
    for path in (*paths, *(checkpoint / MODEL_FILE for _, checkpoint in members)):
        versions[path] = ()
        with suppress(OSError):  # a run may lack it
            status = path.stat()
            versions[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return versions


def load_translator(
    folder: Path | Sequence[Path] | None = None,
    *,
    device: DeviceName = "auto",
    overrides: Sequence[str] = (),
) -> Translator:
    """A translator with the model of a run (default: the newest one).

    Args:
        folder: a run, one of its checkpoints, or a run packed into a file; several form an
            ensemble, which decodes as the first is configured.
        overrides: `decoding.key=value`, in place of the configuration of the run.

    Raises:
        CheckpointError: a folder contains no run, or no readable checkpoint; or the vocabularies of
            an ensemble differ.
        ConfigError: the configuration of a run is damaged; an override is invalid or sets another
            section than decoding; or decoding needs a file that the run does not have.
        DataError: vocabularies, tokenizers or other files of a run are missing or damaged.
    """
    paths: list[Path | None] = (
        [folder] if folder is None or isinstance(folder, Path) else [*folder] or [None]
    )
    with ExitStack() as stack:
        members = [stack.enter_context(opened(path)) for path in paths]
        return build_translator(members, device=device, overrides=overrides)


def build_translator(
    members: Sequence[tuple[Path, Path]],
    *,
    device: DeviceName = "auto",
    overrides: Sequence[str] = (),
    n_best: int = 1,
) -> Translator:
    """As `load_translator`, from pairs of a run and one of its checkpoints.

    Args:
        n_best: how many translations of each sentence the caller will ask for.

    Raises:
        ConfigError: the beam is too narrow for `n_best`, too.
    """
    with unchanged(members):
        run = members[0][0]
        config = load_run_config(run, overrides)
        decoding = config.decoding
        check_n_best(n_best, decoding)
        for other, _ in members[1:]:
            _check_same_vocabularies(run, other)
        models = [load_search_model(*member, device, decoding) for member in members]
        vocabularies = load_vocabularies(run)
        for model, (_, checkpoint) in zip(models, members, strict=True):
            if isinstance(model, OnnxModel) and model.output.n_words != len(vocabularies[1]):
                raise CheckpointError(
                    f"{checkpoint}: its graphs do not fit the vocabularies of the run; was one of "
                    "them changed?"
                )
        for wrap in hooks("wrap", config):
            models = wrap(models, members, config)
        rankers = (rank(config, device) for rank in hooks("rank", config))
        return Translator(
            models[0] if len(models) == 1 else Ensemble(models),
            tokenizers=load_tokenizers(run, config),
            vocabularies=vocabularies,
            options=decoding,
            rankers=[ranker for ranker in rankers if ranker is not None],
        )


def load_search_model(
    run: Path, checkpoint: Path, device: DeviceName, options: DecodingConfig
) -> TranslationModel:
    """The model of a checkpoint for search.

    Raises:
        ConfigError: the device is not there, or cannot compute in this precision.
    """
    # A GPU needs the weights, which an exported run does not have.
    is_gpu = _may_have_gpu() and (checkpoint / MODEL_FILE).exists()
    if device == "cpu" or (device == "auto" and not is_gpu):
        return load_graphs(run, checkpoint, options.cpu_precision)
    # These import torch, which takes a second.
    from nmt.decoding.torch_model import TorchModel
    from nmt.device import set_up_device
    from nmt.run.weights import load_model

    torch_device = set_up_device(device)
    if torch_device.type == "cpu":
        return load_search_model(run, checkpoint, "cpu", options)
    if options.precision == "int8":
        raise ConfigError(
            f"decoding.precision: int8 computes on the CPU, not on {torch_device.type}; use "
            "--device cpu, or float32"
        )
    return TorchModel(load_model(run, checkpoint).to(torch_device).eval())


def _may_have_gpu() -> bool:
    """Whether torch may find a GPU of NVIDIA; it knows for sure, but takes a second to import."""
    has_driver = Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi") is not None
    return has_driver and find_spec("torch") is not None


def _check_same_vocabularies(run: Path, other: Path) -> None:
    """Raises: CheckpointError if tokenizers or vocabularies of the runs differ."""
    configs, folders = (load_run_config(run), load_run_config(other)), (run, other)
    tokenizers = [
        load_tokenizers(folder, config) for folder, config in zip(folders, configs, strict=True)
    ]
    vocabularies = [load_vocabularies(folder) for folder in folders]
    for i, (side, name) in enumerate(zip(SIDES, ("source", "target"), strict=True)):
        subwords = [
            path.read_bytes() if path.exists() else b""
            for path in (model_path(folder, side) for folder in folders)
        ]
        is_same = {
            "tokenizer": tokenizers[0][i].signature == tokenizers[1][i].signature
            and subwords[0] == subwords[1],
            "vocabulary": [*vocabularies[0][i]] == [*vocabularies[1][i]],
        }
        for part, same in is_same.items():
            if not same:
                raise CheckpointError(
                    f"{other}: its {name} {part} differs from that of {run}; an ensemble needs "
                    "runs on the same prepared data"
                )
