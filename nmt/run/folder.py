"""The run folder: what training leaves behind and translation reads. It explains itself and can be moved whole.

config.yaml   manifest.json (of the prepared data)  src.vocab.txt  tgt.vocab.txt  [src.spm.model  tgt.spm.model]
checkpoints/  journal.jsonl  curves.png  tensorboard/  evaluation/  [lexicon.tsv]
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from nmt.config.load import load
from nmt.config.schema import Config, DecodingConfig, DeviceName
from nmt.config.yaml_text import dump
from nmt.data.corpus import FORMAT_VERSION, MANIFEST, config_differences, load_manifest
from nmt.data.encoding import SIDES
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.lexicon import Lexicon
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.translator import Translator, beam_for
from nmt.decoding.unknown_words import UnknownWords
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.files import replacing, write_text
from nmt.model.device import pick_device
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import MODEL, Checkpoints, load_weights
from nmt.text.tokenizers import Tokenizer, load_tokenizer, model_path
from nmt.text.vocabulary import Vocabulary

RUNS = Path("runs")
CONFIG, JOURNAL, CURVES, TENSORBOARD, LEXICON = "config.yaml", "journal.jsonl", "curves.png", "tensorboard", "lexicon.tsv"


def holds_run(folder: Path) -> bool:
    """Whether a training has begun in `folder`."""
    return (folder / CONFIG).exists()


def create(folder: Path, config: Config, prepared: Path) -> None:
    """Make `folder` a run: its configuration, and the vocabularies and tokenizers of the prepared data."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*prepared.glob("*.vocab.txt"), *prepared.glob("*.spm.model"), prepared / MANIFEST]:
        with replacing(folder / path.name) as temporary:
            shutil.copyfile(path, temporary)
    write_config(folder, config)


def write_config(folder: Path, config: Config) -> None:
    """Write or replace the run's configuration."""
    write_text(folder / CONFIG, dump(config))


def check_prepared(config: Config) -> None:
    """Raises: DataError if the prepared folder is missing, or was made with other settings than these."""
    folder = config.prepared_folder
    found = list(config_differences(load_manifest(folder), config))
    if found:
        raise DataError(f"{folder}: prepared with another configuration ({'; '.join(found)}); run `nmt prepare` with --overwrite")


def check_data(folder: Path, prepared: Path) -> None:
    """Raises: DataError if `prepared` is not there, or is not what the run in `folder` was trained on."""
    there = load_manifest(prepared).get("content")
    try:
        own = json.loads((folder / MANIFEST).read_bytes())["content"]
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f"{folder / MANIFEST}: missing or damaged, and by it the run knows its data; if that is {prepared}, copy it from there"
        ) from None
    if own != there:
        raise DataError(f"{prepared}: is not the data that {folder} was trained on; it has been prepared anew since")


def find(folder: Path | None) -> Path:
    """`folder`, or the run under runs/ that was trained last.

    Raises:
        CheckpointError: there is no run.
    """
    if folder is not None:
        if folder.is_file():
            raise CheckpointError(f"{folder}: is a file; name the folder of a run")
        if not holds_run(folder):
            raise CheckpointError(f"{folder}: holds no run; `nmt train -c CONFIG -o {folder}` makes one")
        return folder
    trained = [path.parent.parent for path in RUNS.glob("*/checkpoints/last.json")]
    if not trained:
        raise CheckpointError(f"no run under {RUNS}/ yet: run `nmt train -c CONFIG` first, or name one with --run")
    return max(trained, key=lambda run: (run / "checkpoints" / "last.json").stat().st_mtime)


def load_config(folder: Path, overrides: Sequence[str] = ()) -> Config:
    """The configuration of a run, `decoding.key=value` overrides applied: what else there is, its weights depend on.

    Raises:
        CheckpointError: a newer nmt has made the run.
        ConfigError: it cannot be read, or an override is not of decoding, or not possible.
    """
    for override in overrides:
        if not override.strip().startswith("decoding.") or "=" not in override:
            raise ConfigError(f"--set {override}: a trained run takes decoding.KEY=VALUE alone")
    _check_format(folder)
    return load(folder / CONFIG, overrides)


def _check_format(folder: Path) -> None:
    """Raises: CheckpointError if what this version knows of a run may be wrong. What is no more than damaged is said elsewhere."""
    try:
        version = json.loads((folder / MANIFEST).read_bytes()).get("format_version")
    except (OSError, ValueError, AttributeError):
        return
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise CheckpointError(f"{folder}: made by a newer nmt (format {version}, and this one reads {FORMAT_VERSION}); update nmt")


def load_vocabularies(folder: Path) -> tuple[Vocabulary, Vocabulary]:
    """Source and target. Raises: DataError if one cannot be read."""
    return Vocabulary.load(folder / "src.vocab.txt"), Vocabulary.load(folder / "tgt.vocab.txt")


def load_tokenizers(folder: Path, config: Config) -> tuple[Tokenizer, Tokenizer]:
    """Source and target. Raises: DataError if a subword model cannot be read."""
    data = config.data
    return (
        load_tokenizer(config.tokenizer, data.src_language, "src", folder),
        load_tokenizer(config.tokenizer, data.tgt_language, "tgt", folder),
    )


def build_model(folder: Path, config: Config) -> Seq2Seq:
    """A model with its first weights, for the vocabularies in `folder`: a run's, or prepared data's. Raises: DataError."""
    src, tgt = load_vocabularies(folder)
    return Seq2Seq(config.model, len(src), len(tgt))


def open_checkpoints(folder: Path, config: Config) -> Checkpoints:
    """The checkpoints of a run, of which as many are kept as the configuration says."""
    return Checkpoints(folder, keep_best=config.training.keep_best, keep_last=config.training.keep_last)


def find_checkpoint(folder: Path) -> Path:
    """The best checkpoint of a run; the last, where none has been validated.

    Raises:
        CheckpointError: there is none.
    """
    checkpoints = Checkpoints(folder)
    checkpoint = checkpoints.find("best") or checkpoints.find("last")
    if checkpoint is None:
        raise CheckpointError(f"{folder}: has no checkpoint yet; go on with `nmt train -c {folder / CONFIG} -o {folder} --resume`")
    return checkpoint


def find_member(path: Path | None) -> tuple[Path, Path]:
    """The run and the checkpoint to translate with: `path` is a run, whose best is taken, or one of a run's checkpoints.

    Raises:
        CheckpointError: it is neither.
    """
    if path is not None and (path / MODEL).exists() and holds_run(run := path.resolve().parent.parent):
        return run, path
    run = find(path)
    return run, find_checkpoint(run)


def load_translator(
    folder: Path | Sequence[Path] | None = None,
    *,
    device: DeviceName = "auto",
    overrides: Sequence[str] = (),
    n_best: int = 1,
) -> Translator:
    """The model of a run (default: the one trained last), ready to translate.

    Args:
        folder: a run, or one of its checkpoints; several of them are an ensemble, which decodes as the first is configured.
        overrides: `decoding.key=value`, in place of the run's configuration.
        n_best: translations of each sentence that will be asked for.

    Raises:
        CheckpointError: a folder holds no run, or no checkpoint that can be read; or the vocabularies of an ensemble differ.
        ConfigError, DataError: the run's configuration, vocabularies or tokenizers are missing or damaged.
        ConfigError: an override is not of decoding, or not possible; or the beam is too narrow for `n_best`.
    """
    given: list[Path | None] = [folder] if folder is None or isinstance(folder, Path) else [*folder] or [None]
    return load_members([find_member(path) for path in given], device=device, overrides=overrides, n_best=n_best)


def load_members(
    members: Sequence[tuple[Path, Path]], *, device: DeviceName = "auto", overrides: Sequence[str] = (), n_best: int = 1
) -> Translator:
    """As `load_translator`, of runs and their checkpoints as `find_member` has found them."""
    run = members[0][0]
    config = load_config(run, overrides)
    beam_for(n_best, config.decoding)
    for other, _ in members[1:]:
        _check_alike(run, other)
    decoding, place = config.decoding, pick_device(device)
    models = [_load_model(*member, place, decoding) for member in members]
    lexicon, vocabularies = load_lexicon(run, decoding), load_vocabularies(run)
    return Translator(
        models[0] if len(models) == 1 else Ensemble(models),
        tokenizers=load_tokenizers(run, config),
        vocabularies=vocabularies,
        options=decoding,
        unknown=UnknownWords(decoding.replace_unknown, lexicon if decoding.lexicon else None),
        shortlist=Shortlist(lexicon, *vocabularies, decoding.shortlist) if lexicon and decoding.shortlist else None,
    )


def load_lexicon(folder: Path, decoding: DecodingConfig) -> Lexicon | None:
    """The run's lexicon, where there is one and something is to be looked up.

    Raises:
        ConfigError: there is none, and it is needed.
        DataError: it is damaged.
    """
    path = folder / LEXICON
    if path.exists() and (decoding.shortlist or (decoding.replace_unknown and decoding.lexicon)):
        return Lexicon.load(path)
    if decoding.shortlist:
        raise ConfigError(f"decoding.shortlist: {decoding.shortlist} needs the run's lexicon; `nmt lexicon {folder}` makes it")
    return None


def _load_model(run: Path, checkpoint: Path, place: torch.device, decoding: DecodingConfig) -> Seq2Seq:
    model = build_model(run, load_config(run))
    load_weights(checkpoint, model)
    model.to(place)
    return model.pack(decoding.precision)


def _check_alike(run: Path, other: Path) -> None:
    """Raises: CheckpointError if what the models read and write is not the same."""
    configs, folders = (load_config(run), load_config(other)), (run, other)
    tokenizers = [load_tokenizers(folder, config) for folder, config in zip(folders, configs, strict=True)]
    vocabularies = [load_vocabularies(folder) for folder in folders]
    for i, (side, name) in enumerate(zip(SIDES, ("source", "target"), strict=True)):
        subwords = [path.read_bytes() if path.exists() else b"" for path in (model_path(folder, side) for folder in folders)]
        alike = {
            "tokenizer": tokenizers[0][i].signature == tokenizers[1][i].signature and subwords[0] == subwords[1],
            "vocabulary": [*vocabularies[0][i]] == [*vocabularies[1][i]],
        }
        for what, is_alike in alike.items():
            if not is_alike:
                raise CheckpointError(f"{other}: its {name} {what} is not that of {run}; only runs on the same data go together")
