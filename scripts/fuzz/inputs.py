"""What the cases start from: a tiny run with all its files, made of invented sentences; and random
changes.
"""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import random
import re
import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

CONFIG = {
    "name": "fuzz",
    "data": {
        "source": {"format": "tsv", "path": "pairs.tsv", "columns": {"en": 1, "de": 2}},
        "split": {"dev": 20, "test": 20},
        "prepared": "prepared",
        "workers": 1,
    },
    "tokenizer": {"kind": "bpe", "size": 60},
    "model": {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}},
    "training": {
        "max_steps": 1,
        "validate_every": 1,
        "validation_pairs": 2,
        "final_pairs": 0,
        "batch": {"size": 8},
    },
    "decoding": {"beam": 2, "max_length_ratio": 1},
}
SUBJECTS, VERBS = (
    ("Anna", "Der König", "Ein Hund", "Sie"),
    ("sieht", "kennt", "hört", "findet", "liebt", "will"),
)
THINGS = (
    "den Baum",
    "das Haus",
    "die Straße",
    "den Fluss",
    "1984",
    "nichts",
    "uns",
    "es",
    "alles",
    "„ja“",
)
PAIRS = [
    (
        f"{subject} {verb} {thing}.".translate(str.maketrans("öäß", "oas")),
        f"{subject} {verb} {thing}.",
    )
    for subject in SUBJECTS
    for verb in VERBS
    for thing in THINGS
]
TABLE = "".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS).encode()
ROWS = TABLE.splitlines(keepends=True)
SMALL_TABLE = b"".join(ROWS[:6])
LEXICON = b"source\ttarget\tprobability\tcount\nAnna\tAnna\t0.9000\t9\nsees\tsieht\t0.5000\t4\n"
VECTORS = (b"3 3\nAnna 0.1 -2e-3 3\nden 1 2 3\n", b"den 1 2 3\n")
CONFIGURATIONS = (
    b"name: a\ndata:\n  source: {format: tsv, path: x.tsv, columns: {en: 1, de: name}}\n  split: {dev: 10, test: 20}\n",
    b"data:\n  direction: de-en\n  sources:\n    - {format: jsonl, path: [a.gz, 'b*.jsonl'], share: 0.5}\n    - &a {path: x.tsv}\n"
    b"    - *a\n",
    b"name: b\ndata: {source: {path: x.tsv}}\ntokenizer: {kind: bpe, size: 100}\nvocabulary: {joint: true}\n"
    b"model: {tie_embeddings: all, dropout: 1e-1, encoder: {layers: 2}}\n",
    b"data: {source: {format: lines, files: {en: a.en, de: a.de}}}\ntraining: {max_steps: 10, batch: {size: auto, unit: tokens},\n"
    b"  learning_rate: {peak: 1e-3, schedule: cosine}}\ndecoding: {beam: 5, lexicon: null}\n",
)
JSON_LINES = (
    b'{"en": "Anna sees us.", "de": "Anna sieht uns."}\n{"translation": {"en": "It.", "de": "Es."}, "id": 3}\n',
    b'{"en": "\\u0041nna \\"x\\"", "de": "\\ud83d\\ude00", "n": [1, 2.5e3, null, {}]}\n',
)
TMX = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="en"/><body>\n'
    b'<tu tuid="1"><tuv xml:lang="en-GB"><seg>Anna <bpt i="1">b</bpt>sees<ept i="1"/> us &amp; it.</seg></tuv>\n'
    b'<tuv xml:lang="de"><seg>Anna sieht uns &#x263A;<![CDATA[<b>]]>.</seg></tuv></tu></body></tmx>\n',
    '<?xml version="1.0" encoding="UTF-16"?><tmx><body><tu><tuv '
    'lang="EN_us"><seg>a</seg></tuv><tuv lang="de"><seg>ä</seg></tuv>'
    "</tu></body></tmx>".encode("utf-16"),
)
ALIGNMENTS = b"0-0 1-1 2?2\n\n0-1\n"

# What is rare at random, but means something to a reader of a format.
TOKENS = (
    *(
        b"\0",
        b"\t",
        b"\n",
        b"\r\n",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xe2\x80\xa8",
        b"\xf0\x9f\x98\x80",
    ),
    *(
        b"[" * 3000,
        b"{" * 50,
        b'"',
        b"'",
        b"\\",
        b"\\ud800",
        b"null",
        b"true",
        b"NaN",
        b"Infinity",
        b"-1",
        b"0",
        b"1e999",
        b"-0.0",
    ),
    *(
        b"9" * 30,
        b"9" * 5000,
        b"18446744073709551616",
        b"2147483648",
        b"../",
        b"/etc/passwd",
        b"<unk>\t1\n",
        b"<pad>",
        b"%s",
    ),
    *(
        b"{}",
        b"[]",
        b'""',
        b"&a ",
        b"*a",
        b"!!python/object/apply:os.system ",
        b"<<: ",
        b"--- ",
        b"- ",
        b": ",
        b"? ",
        b"| ",
        b"# ",
    ),
    *(
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"PK\x05\x06",
        b"\x1f\x8b\x08\0",
        b"BZh9",
        b"\xfd7zXZ\0",
        b"\x28\xb5\x2f\xfd",
        b"PAR1",
    ),
    *(
        b'"shape":[99999999999]',
        b'"data_offsets":[0,9]',
        b"F64",
        b"I64",
        b"Transfer-Encoding",
        b"application/json",
        b"a" * 9000,
    ),
    *(
        b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
        b"&a;",
        b"<tu>",
        b"</tuv>",
        b"<seg>",
        b"<x>" * 300,
        b"*",
        b"**/",
        b"[!a]",
        b"\r\n\r\n",
    ),
    *(
        "\u0301".encode() * 500,
        "￭▁".encode(),
        "\u202e".encode(),
        b"\x1b[2J",
        b"<script>",
        b"\xff\xff\xff\x7f",
        b"\x80" * 9 + b"\x01",
    ),
)


# Scalars in JSON, and in the one-line forms of YAML.
_SCALAR = re.compile(rb'(?<=[:\[,] )(?:"[^"]*"|[-+.\w]+)')
VALUES = (
    *(
        b"null",
        b"true",
        b'"x"',
        b'""',
        b"1",
        b"-1",
        b"1.5",
        b"1e999",
        b"[]",
        b"{}",
        b'[{"x": 1}]',
        b'{"x": []}',
        b"NaN",
        b'["x"]',
    ),
    *(b'"\\u001b[2J"', b'"a\\nb"', b'"../x"', b"9" * 20, b'"<b>"'),
)


def mutate(seeds: Sequence[bytes], random_: random.Random) -> bytes:
    """Change one of the inputs in up to eight places."""
    content = bytearray(random_.choice(seeds))
    for _ in range(random_.choice((1, 1, 1, 2, 3, 8))):
        start = random_.randrange(len(content) + 1)
        end = min(len(content), start + random_.choice((1, 1, 2, 4, 16, 256)))
        change = random_.randrange(9)
        if change == 8 and (values := [*_SCALAR.finditer(content)]):
            first, last = random_.choice(values).span()
            content[first:last] = random_.choice(VALUES)
        elif change == 0 and start < len(content):
            content[start] ^= 1 << random_.randrange(8)
        elif change == 1 and start < len(content):
            content[start] = random_.choice((0, 1, 127, 128, 255, random_.randrange(256)))
        elif change == 2:
            content[start:end] = b""
        elif change == 3:
            content[start:start] = content[start:end] * random_.choice((1, 2, 50))
        elif change == 4:
            del content[start:]
        elif change == 5:
            other = random_.choice(seeds)
            content[start:end] = other[random_.randrange(len(other) + 1) :][
                : random_.choice((1, 8, 64, 512))
            ]
        elif change == 6:
            content[start:end] = random_.choice(TOKENS)
        else:
            content[start:start] = random_.choice(TOKENS)
    return bytes(content)


def make_files(folder: Path) -> None:
    """Prepare invented sentence pairs, train a tiny run, evaluate, bundle and export it; nothing of
    what is done.
    """
    from nmt.commands import evaluate, prepare, train
    from nmt.commands.evaluate_options import EvaluateOptions
    from nmt.config.load import config_from_dict
    from nmt.extras.export import command as export
    from nmt.extras.share import bundle_command as bundle

    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder):
        if not Path("run.nmt").exists():
            Path("pairs.tsv").write_bytes(TABLE)
            Path("c.json").write_text(json.dumps(CONFIG, indent=1), encoding="utf-8")
            config = config_from_dict(CONFIG)
            prepare.run(config, progress=False, overwrite=True)
            shutil.rmtree("run", ignore_errors=True)
            train.run(config, Path("run"), quiet=True)
            evaluate.run(EvaluateOptions([Path("run")], split="dev"))
            bundle.run(Path("run"), Path("run.nmt"))
        if not Path("exported").exists():
            export.run(Path("run"), Path("exported"))


def put(content: bytes, folder: Path, name: str) -> Path:
    """Write a file into the folder of the case."""
    path = folder / "work" / name
    try:
        path.write_bytes(content)
    except FileNotFoundError:
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    return path


def files(*patterns: str) -> Callable[[Path], list[bytes]]:
    """The contents of files below the folder."""
    return lambda folder: [
        path.read_bytes() for pattern in patterns for path in sorted(folder.glob(pattern))
    ]


def json_files(*patterns: str) -> Callable[[Path], list[bytes]]:
    """The same for JSON files, without the checksum, which would end each case early."""
    return lambda folder: [_without_checksum(content) for content in files(*patterns)(folder)]


def named_files(folder: Path, *patterns: str) -> list[bytes]:
    """Files below the folder, each with its name on a line before it; small ones only."""
    paths = [
        path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()
    ]
    return [
        str(path.relative_to(folder)).encode()
        + b"\n"
        + (_without_checksum if path.suffix == ".json" else bytes)(path.read_bytes())
        for path in paths
        if path.stat().st_size < 20_000
    ]


def _without_checksum(content: bytes) -> bytes:
    value = json.loads(content)
    return (
        json.dumps({key: each for key, each in value.items() if key != "checksum"}).encode()
        if isinstance(value, dict)
        else content
    )


def compressed(content: bytes) -> dict[str, bytes]:
    """A content in all compressed forms, by suffix."""
    import zstandard

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_about.txt", "x")
        archive.writestr("pairs.tsv", content)
    return {
        "gz": gzip.compress(content),
        "bz2": bz2.compress(content),
        "xz": lzma.compress(content),
        "zst": zstandard.compress(content),
        "zip": stream.getvalue(),
    }


def parquet(nested: bool, compression: str) -> bytes:
    """A Parquet file of a few pairs."""
    import pyarrow
    import pyarrow.parquet

    pairs = [{"en": src, "de": tgt} for src, tgt in PAIRS[:5]]
    columns = (
        {"id": [*range(5)], "translation": pairs}
        if nested
        else {side: [pair[side] for pair in pairs] for side in ("en", "de")}
    )
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream, compression=compression)
    return stream.getvalue()
