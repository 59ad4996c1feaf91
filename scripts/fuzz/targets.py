"""What is fuzzed: for each kind of input, the function that reads it and valid inputs."""

import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scripts.fuzz import readers
from scripts.fuzz.inputs import (
    ALIGNMENTS,
    CONFIG,
    CONFIGURATIONS,
    JSON_LINES,
    LEXICON,
    ROWS,
    SMALL_TABLE,
    TABLE,
    TMX,
    VECTORS,
    compressed,
    files,
    json_files,
    named_files,
    parquet,
)
from scripts.fuzz.server import REQUESTS, request


@dataclass(frozen=True)
class Target:
    """A reader of one kind of input, and valid inputs to start from. Both get the folder of the
    files that they need.
    """

    read: Callable[[bytes, Path], object]
    seeds: Callable[[Path], Sequence[bytes]]


def constant(*contents: bytes) -> Callable[[Path], Sequence[bytes]]:
    return lambda _: contents


def _unpacked(folder: Path) -> list[bytes]:
    """The members of the bundle, each with its name on a line before it."""
    with zipfile.ZipFile(folder / "run.nmt") as archive:
        members = {
            member.filename: archive.read(member)
            for member in archive.infolist()
            if member.filename != "config.yaml"
        }
    members["config.yaml"] = json.dumps(CONFIG).encode()
    return [name.encode() + b"\n" + content for name, content in members.items()]


def _shown_files(folder: Path) -> list[bytes]:
    """The files that commands show, each with its name on a line before it."""
    patterns = (
        "*.json",
        "*.jsonl",
        "*.vocab.txt",
        "evaluation/*.jsonl",
        "checkpoints/*.json",
        "checkpoints/*/*.json",
    )
    return [*named_files(folder / "run", *patterns), b"config.yaml\n" + json.dumps(CONFIG).encode()]


def _exported_files(folder: Path) -> list[bytes]:
    """The files that the exported translator reads, each with its name on a line before it;
    settings without checksums.
    """
    exported = folder / "exported"
    settings = json.loads((exported / "settings.json").read_bytes())
    contents = {
        name: (exported / name).read_bytes()
        for name in settings["sha256"]
        if name != "requirements.txt"
    }
    contents["settings.json"] = json.dumps({**settings, "sha256": {}, "checksum": None}).encode()
    return [name.encode() + b"\n" + content for name, content in contents.items()]


def _table(
    name: str = "x", table_format: str = "tsv", columns: tuple[int | str, int | str] = (1, 2)
) -> Callable[[bytes, Path], object]:
    return partial(readers.read_table, name=name, table_format=table_format, columns=columns)


MANY = (
    b"*.tsv\nc/**/*.gz\n\n"
    + SMALL_TABLE
    + b"\n---\n"
    + ROWS[7]
    + b"\n---\n"
    + compressed(SMALL_TABLE)["gz"]
)
TARGETS: dict[str, Target] = {
    "configuration": Target(readers.read_config, constant(*CONFIGURATIONS)),
    "configuration of a run": Target(readers.read_config, files("c.json", "run/config.yaml")),
    "override": Target(
        readers.read_override,
        constant(b"data.source={format: tsv, path: x}", b"training.max_steps=3", b"a.b.c=[1, 'x']"),
    ),
    "table": Target(_table(), constant(SMALL_TABLE, *ROWS[8:11], b"".join(ROWS[:40]))),
    "table, header": Target(
        _table(columns=("en", "de")),
        constant(b"en\tde\n" + SMALL_TABLE, b"\xef\xbb\xbfid\tde\ten\n1\ta\tb\n"),
    ),
    "table, tatoeba": Target(
        _table(table_format="tatoeba", columns=(2, 4)),
        constant(b"1\tAnna.\t22\tAnna.\n3\tA b.\t4\tC d.\n"),
    ),
    **{
        f"table, {suffix}": Target(
            _table(f"x.{suffix}"), constant(content, compressed(ROWS[0])[suffix])
        )
        for suffix, content in compressed(TABLE[:3000]).items()
    },
    "several files": Target(
        readers.read_many_files,
        constant(
            MANY,
            b"a.tsv\nb.tsv\n\n" + ROWS[0] + b"\n---\n" + ROWS[1],
            b"**\n[ab].t?v\n\n" + ROWS[2],
        ),
    ),
    "JSON lines": Target(_table(table_format="jsonl", columns=("en", "de")), constant(*JSON_LINES)),
    "Parquet": Target(
        _table("x.parquet", "parquet", ("en", "de")),
        lambda _: [
            parquet(nested, kind) for nested in (False, True) for kind in ("none", "snappy", "zstd")
        ],
    ),
    "TMX": Target(_table("x.tmx", "tmx", ("en", "de")), constant(*TMX)),
    "unknown table": Target(
        readers.read_unknown_table,
        constant(b"".join(ROWS[:20]), b'en,de\n"a, b",c\nd,"e"\n' * 5, b"x;y\nIt is.;Es ist.\n"),
    ),
    "vocabulary": Target(readers.read_vocabulary, files("run/*.vocab.txt")),
    "subword model": Target(readers.read_subwords, files("run/*.spm.model")),
    "weights": Target(readers.read_weights, files("run/checkpoints/*/model.safetensors")),
    "optimizer": Target(readers.read_optimizer, files("run/checkpoints/*/optimizer.safetensors")),
    "pointer": Target(readers.read_pointer, json_files("run/checkpoints/*.json")),
    "progress": Target(
        readers.read_checkpoint_progress, json_files("run/checkpoints/*/progress.json")
    ),
    "manifest": Target(readers.read_manifest, json_files("run/manifest.json")),
    "checksums": Target(
        readers.read_checksums, json_files("run/checksums.json", "prepared/checksums.json")
    ),
    "journal": Target(readers.read_journal, files("run/journal.jsonl")),
    "run, shown": Target(readers.show_run, _shown_files),
    "lexicon": Target(readers.read_lexicon, constant(LEXICON)),
    "encoded data": Target(readers.read_arrays, files("prepared/train.src.npy")),
    "encoded data, offsets": Target(
        partial(readers.read_arrays, name="train.src.offsets.npy"),
        files("prepared/train.src.offsets.npy"),
    ),
    "word vectors": Target(readers.read_vectors, constant(*VECTORS)),
    "reference alignments": Target(readers.read_alignments, constant(ALIGNMENTS)),
    "bundle": Target(readers.read_bundle, files("run.nmt")),
    "bundle, members": Target(readers.read_bundle_member, _unpacked),
    "exported run": Target(readers.read_exported, _exported_files),
    "text": Target(
        readers.tokenize,
        constant(TABLE[:200], "￭Anna ▁sieht\u00a0„1984“ – İ! ﬁ e\u0301\n".encode()),
    ),
    "translation": Target(readers.translate, constant(TABLE[:60], b"Anna sieht 1984.\n")),
    "request": Target(request, constant(*REQUESTS)),
}
