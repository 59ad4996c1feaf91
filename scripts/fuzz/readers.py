"""Functions that read one damaged file, or a folder with one, as a command of nmt reads it.

Each gets the content, and the folder of the valid files (see `inputs.make_files`), in which `work/`
belongs to the case.
"""

import contextlib
import io
import json
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from nmt.errors import NmtError
from scripts.fuzz.inputs import CONFIG, put

WRITTEN_EACH = (
    16  # one configuration in 16 is also written again, which takes longer than reading it
)
MAX_TEXT = 200  # characters that are translated in a case


def read_config(content: bytes, folder: Path) -> None:
    from nmt.config.load import load
    from nmt.config.yaml_text import dump

    config = load(put(content, folder, "x.yaml"))
    if zlib.crc32(content) % WRITTEN_EACH == 0:
        dump(config)


def read_override(content: bytes, _folder: Path) -> None:
    from nmt.config.load import config_from_dict, load

    load(config_from_dict(CONFIG), [content.decode("utf-8", "surrogateescape")])


def _clean(source: Any) -> None:
    from nmt.config.schema import CleaningConfig
    from nmt.data.reading import clean_rows

    clean_rows(source, CleaningConfig(), [*source.rows()], source.first_line, ("en", "de"))


def read_table(
    content: bytes,
    folder: Path,
    name: str = "x",
    table_format: Any = "tsv",
    columns: tuple[int | str, int | str] = (1, 2),
) -> None:
    from nmt.config.schema import SourceConfig
    from nmt.data.formats import open_pairs

    config = SourceConfig(
        format=table_format, columns=dict(zip(("en", "de"), columns, strict=True))
    )
    _clean(open_pairs(config, put(content, folder, name), "en", "de"))


def read_many_files(content: bytes, folder: Path) -> None:
    """Paths or patterns, one a line; an empty line; then the contents of the files, separated by
    lines of dashes.
    """
    from nmt.config.schema import SourceConfig
    from nmt.data.formats import find_files, open_source

    paths, _, rest = content.partition(b"\n\n")
    for name, part in zip(("a.tsv", "b.tsv", "c/a.tsv.gz"), rest.split(b"\n---\n"), strict=False):
        put(part, folder, f"many/{name}")
    names = [name.strip("/") for name in paths.decode("utf-8", "surrogateescape").split("\n")]
    files = find_files(
        [folder / "work" / "many" / name for name in names[:4] if name and ".." not in name]
    )
    config = SourceConfig(format="tsv", columns={"en": 1, "de": 2})
    sources = open_source(config, {"": files}, "en", "de")
    sources += (
        open_source(SourceConfig(format="lines"), {"en": files[:2], "de": files[-2:]}, "en", "de")
        if files
        else []
    )
    for source in sources:
        _clean(source)


def read_unknown_table(content: bytes, folder: Path) -> None:
    from nmt.extras.init.inspection import inspect_table

    inspect_table(put(content, folder, "x.csv"))


def read_vocabulary(content: bytes, folder: Path) -> None:
    from nmt.text.vocabulary import Vocabulary

    Vocabulary.load(put(content, folder, "x.vocab.txt"))


def read_subwords(content: bytes, folder: Path) -> None:
    from nmt.config.schema import TokenizerConfig
    from nmt.text.tokenizers import load_tokenizer

    path = put(content, folder, "src.spm.model").parent
    tokenizer = load_tokenizer(TokenizerConfig(kind="bpe"), "en", "src", path)
    tokenizer.join(tokenizer.split("Anna sieht den König."))


@cache
def model(folder: Path) -> Any:
    from nmt.run.folder import build_model, load_run_config

    return build_model(folder / "run", load_run_config(folder / "run"))


def read_weights(content: bytes, folder: Path) -> None:
    from nmt.run.checkpoint import load_weights

    load_weights(put(content, folder, "model.safetensors").parent, model(folder))


def read_optimizer(content: bytes, folder: Path) -> None:
    """With one update: a state of another shape can be loaded, but not used."""
    import torch

    from nmt.run.checkpoint import load_optimizer

    path = put(content, folder, "optimizer.safetensors").parent
    optimizer = torch.optim.AdamW(model(folder).parameters(), lr=0.0, fused=True)
    load_optimizer(path, model(folder), optimizer)
    for parameter in model(folder).parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()


def read_pointer(content: bytes, folder: Path) -> None:
    from nmt.run.checkpoint import Checkpoints

    run = put(content, folder, "checkpoints/best.json").parent.parent
    (run / "checkpoints" / "step-00000001").mkdir(exist_ok=True)
    Checkpoints(run).find("best")


def read_checkpoint_progress(content: bytes, folder: Path) -> None:
    from nmt.run.checkpoint import read_progress

    read_progress(put(content, folder, "progress.json").parent)


def read_manifest(content: bytes, folder: Path) -> None:
    from nmt.data.manifest import check_files, load_manifest

    path = put(content, folder, "manifest.json").parent
    manifest = load_manifest(path)
    with contextlib.suppress(NmtError):  # the files are not there
        check_files(path, manifest)


def read_checksums(content: bytes, folder: Path) -> None:
    from nmt.files import is_intact

    put(content, folder, "checked/checksums.json")
    is_intact(put(b"", folder, "checked/src.vocab.txt"))


def read_journal(content: bytes, folder: Path) -> None:
    from nmt.run.journal import Journal

    Journal(put(content, folder, "journal.jsonl")).read()


def read_lexicon(content: bytes, folder: Path) -> None:
    from nmt.extras.lexicon.lexicon import Lexicon

    Lexicon.load(put(content, folder, "lexicon.tsv"))


def read_arrays(content: bytes, folder: Path, name: str = "train.src.npy") -> None:
    from nmt.data.corpus import Sequences

    other = ({"train.src.npy", "train.src.offsets.npy"} - {name}).pop()
    path = put(content, folder, f"{name}.d/{name}")
    if not path.with_name(other).exists():
        shutil.copyfile(folder / "prepared" / other, path.with_name(other))
    sequences = Sequences.load(path.with_name("train.src"))
    len(sequences[len(sequences) - 1])


def read_vectors(content: bytes, folder: Path) -> None:
    from nmt.extras.vectors.vectors import load_vectors
    from nmt.text.vocabulary import Vocabulary

    load_vectors(
        put(content, folder, "vectors.txt"), Vocabulary(["Anna", "den", "König"], [0, 3, 2, 1]), 3
    )


def read_alignments(content: bytes, folder: Path) -> None:
    from nmt.extras.analysis.alignment_error import (
        alignment_error_rate,
        check_links,
        read_reference_alignments,
    )

    alignments = read_reference_alignments(put(content, folder, "x.align"), 3)
    check_links(alignments, ["a b c"] * 3, ["d e f"] * 3)
    alignment_error_rate([frozenset({(0, 0)})] * 3, alignments)


def read_bundle(content: bytes, folder: Path) -> None:
    from nmt.extras.share.bundle import unpacked
    from nmt.run.load import find_run_and_checkpoint

    with unpacked(put(content, folder, "x.nmt")) as run:
        find_run_and_checkpoint(run)


def read_bundle_member(content: bytes, folder: Path) -> None:
    """First line: the name of a member, in place of which the rest stands; the archive itself is
    valid.
    """
    name, _, rest = content.partition(b"\n")
    stream = io.BytesIO()
    with zipfile.ZipFile(folder / "run.nmt") as old, zipfile.ZipFile(stream, "w") as archive:
        for member in old.infolist():
            if member.filename.encode() != name:
                archive.writestr(
                    member,
                    json.dumps(CONFIG) if member.filename == "config.yaml" else old.read(member),
                )
        with contextlib.suppress(ValueError):  # a name that zipfile does not write
            archive.writestr(zipfile.ZipInfo(name.decode("utf-8", "replace")[:1000]), rest)
    read_bundle(stream.getvalue(), folder)


def read_exported(content: bytes, folder: Path) -> None:
    """With a file of the exported folder replaced; see `_replaced`. Without checksums."""
    from nmt.extras.export.translate import TranslationError, Translator

    valid, exported = folder / "exported", folder / "work" / "exported"
    if not exported.exists():
        shutil.copytree(valid, exported)
        settings = json.loads((valid / "settings.json").read_bytes())
        (exported / "settings.json").write_text(
            json.dumps({**settings, "sha256": {}, "checksum": None})
        )
    with _replaced(exported, content) as is_there:
        try:
            if is_there:
                Translator(exported).translate(["Anna sees the river."])
        except TranslationError as error:
            raise NmtError(str(error)) from None


@contextlib.contextmanager
def _replaced(folder: Path, content: bytes) -> Iterator[bool]:
    """Inside the block, the file of `folder` that the first line of `content` names holds the rest.
    Yields whether it is there.
    """
    name, _, rest = content.partition(b"\n")
    paths = [
        path
        for path in folder.rglob("*")
        if path.is_file() and str(path.relative_to(folder)).encode() == name
    ]
    originals = [path.read_bytes() for path in paths]
    for path in paths:
        path.write_bytes(rest)
    try:
        yield bool(paths)
    finally:
        for path, original in zip(paths, originals, strict=True):
            path.write_bytes(original)


def show_run(content: bytes, folder: Path) -> None:
    """With a file of the run replaced, see `_replaced`: the commands that show runs."""
    from nmt.extras.runs import check as doctor
    from nmt.extras.runs import inspect
    from nmt.extras.runs import table as runs

    valid, run = folder / "run", folder / "work" / "runs" / "run"
    if not run.exists():
        shutil.copytree(valid, run)
        for path in run.rglob("*.json"):
            value = json.loads(path.read_bytes())
            if isinstance(value, dict):
                path.write_text(
                    json.dumps({key: each for key, each in value.items() if key != "checksum"})
                )
        (run / "checksums.json").unlink()
        (run / "config.yaml").write_text(
            json.dumps(CONFIG)
        )  # reading the whole one takes most of the time
        for path in run.glob("checkpoints/*/checksums.json"):
            path.unlink()
    with _replaced(run, content) as is_there:
        if not is_there:
            return
        runs.to_table(runs.run(run.parent))
        with contextlib.suppress(NmtError):
            doctor.run(run)
        facts = inspect.run(run)
        inspect.describe(facts)
        json.dumps(facts)
        inspect.card(facts)


@cache
def translator(folder: Path) -> Any:
    from nmt.run.load import load_translator

    return load_translator(folder / "run", device="cpu")


def translate(content: bytes, folder: Path) -> None:
    from nmt.lines import stream_lines

    for lines in stream_lines(io.BufferedReader(io.BytesIO(content[:MAX_TEXT])), "x"):
        for each in translator(folder).translate(lines):
            assert "\n" not in each.text


@cache
def tokenizers(folder: Path) -> list[Any]:
    from nmt.config.schema import TokenizerConfig
    from nmt.text.tokenizers import TOKENIZERS, load_tokenizer

    return [
        load_tokenizer(TokenizerConfig(kind=kind), "en", "src", folder / "run")
        for kind in TOKENIZERS
    ]


def tokenize(content: bytes, folder: Path) -> None:
    """All that happens to a sentence beside the model: decoding, normalization, tokens, and
    back.
    """
    from nmt.lines import stream_lines
    from nmt.text.normalization import normalize_and_report

    for lines in stream_lines(io.BufferedReader(io.BytesIO(content)), "x"):
        for line in lines:
            normalize_and_report(line)
        for tokenizer in tokenizers(folder):
            for tokens in tokenizer.split_all(lines):
                assert "\n" not in tokenizer.join(tokens)
