"""The run folder: what training leaves behind and translation reads. It explains itself and can be moved whole.

config.yaml   manifest.json (of the prepared data)  src.vocab.txt  tgt.vocab.txt  [src.spm.model  tgt.spm.model]
checkpoints/  journal.jsonl  curves.png  tensorboard/  evaluation/  [lexicon.tsv]
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from nmt.config import Config, DecodingConfig, DeviceName, dump, load
from nmt.decoding.lexicon import Lexicon
from nmt.decoding.search import SearchOptions
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.translator import Translator
from nmt.decoding.unknown import UnknownWords
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.files import replacing, write_text
from nmt.model.device import pick_device
from nmt.model.seq2seq import Seq2Seq
from nmt.text.corpus import MANIFEST, config_differences, load_manifest
from nmt.text.tokenizers import Tokenizer, load_tokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.training.checkpoint import Checkpoints, load_weights

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
    if load_manifest(folder)["content"] != load_manifest(prepared)["content"]:
        raise DataError(f"{prepared}: is not the data that {folder} was trained on; it has been prepared anew since")


def find(folder: Path | None) -> Path:
    """`folder`, or the run under runs/ that was trained last.

    Raises:
        CheckpointError: there is no run.
    """
    if folder is not None:
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
        ConfigError: it cannot be read, or an override is not of decoding, or not possible.
    """
    for override in overrides:
        if not override.strip().startswith("decoding."):
            raise ConfigError(f"--set {override}: a trained run takes decoding.KEY=VALUE alone")
    return load(folder / CONFIG, overrides)


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


def load_translator(
    folder: Path,
    *,
    checkpoint: Path | None = None,
    device: DeviceName = "auto",
    beam: int | None = None,
    overrides: Sequence[str] = (),
) -> Translator:
    """The model of a run, ready to translate: that of `checkpoint`, or the best; `decoding.key=value` overrides applied.

    Raises:
        CheckpointError: the folder holds no run, or no checkpoint that can be read.
        ConfigError, DataError: the run's configuration, vocabularies or tokenizers are missing or damaged.
    """
    config = load_config(find(folder), overrides)
    checkpoint = checkpoint or find_checkpoint(folder)
    model = build_model(folder, config)
    load_weights(checkpoint, model)
    model, decoding = model.to(pick_device(device)), config.decoding
    if decoding.precision == "int8":
        model.quantize()
    lexicon, vocabularies = load_lexicon(folder, decoding), load_vocabularies(folder)
    return Translator(
        model,
        tokenizers=load_tokenizers(folder, config),
        vocabularies=vocabularies,
        options=SearchOptions(beam or decoding.beam, decoding.length_penalty, decoding.max_length_ratio),
        batch_size=decoding.batch,
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
