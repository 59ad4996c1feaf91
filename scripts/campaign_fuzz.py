"""Fuzzing: damaged and hostile inputs of every kind that nmt reads.

    python scripts/campaign_fuzz.py -o FOLDER [--cases 10000] [--targets vocabulary ...] [--seed 1]

Each target starts from valid files and changes them at random. A case passes if nmt accepts the input or refuses it with one of its
own errors; it fails with any other exception, a crash of the interpreter, more than 10 seconds of processor time, or more than
2 GB of additional memory. Case NUMBER of a target depends only on the seed and the number. After an interruption, repeat the
command: it continues. A larger --cases extends a campaign. Failing inputs are in FOLDER/failures; counts in FOLDER/counts.json.
"""

import argparse
import asyncio
import contextlib
import io
import json
import logging
import multiprocessing
import random
import shutil
import signal
import string
import sys
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from gzip import compress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from nmt.errors import NmtError

CHUNK = 5000  # cases of a process
SECONDS, EXTRA_BYTES = 10, 2 << 30

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
    "training": {"max_steps": 1, "validate_every": 1, "validation_pairs": 2, "final_pairs": 0, "batch": {"size": 8}},
    "decoding": {"beam": 2, "max_length_ratio": 1},
}
SUBJECTS, VERBS = ("Anna", "Der König", "Ein Hund", "Sie"), ("sieht", "kennt", "hört", "findet", "liebt", "will")
THINGS = ("den Baum", "das Haus", "die Straße", "den Fluss", "1984", "nichts", "uns", "es", "alles", "„ja“")

# What is rare at random, but means something to a reader of a format.
TOKENS = (
    *(b"\0", b"\t", b"\n", b"\r\n", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80"),
    *(b"[" * 3000, b"{" * 50, b'"', b"'", b"\\", b"\\ud800", b"null", b"true", b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"-0.0"),
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
        b"{}",
    ),
    *(b"&a ", b"*a", b"!!python/object/apply:os.system ", b"<<: ", b"--- ", b"- ", b": ", b"? ", b"| ", b"PK\x03\x04", b"\x1f\x8b"),
    *(b'"shape":[99999999999]', b'"data_offsets":[0,9]', b"F64", b"I64", b"Transfer-Encoding", b"application/json", b"a" * 9000),
    "\u0301".encode() * 500,
    "￭▁".encode(),
    "\u202e".encode(),
)

Read = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Target:
    """A reader of one kind of input, and valid inputs to start from. Both get the folder of the files that they need."""

    read: Read
    seeds: Callable[[Path], Sequence[bytes]]


class LimitError(BaseException):
    """A case takes too long."""


def mutate(seeds: Sequence[bytes], random_: random.Random) -> bytes:
    """Change one of the inputs in up to eight places."""
    content = bytearray(random_.choice(seeds))
    for _ in range(random_.choice((1, 1, 1, 2, 3, 8))):
        start = random_.randrange(len(content) + 1)
        end = min(len(content), start + random_.choice((1, 1, 2, 4, 16, 256)))
        change = random_.randrange(8)
        if change == 0 and start < len(content):
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
            content[start:end] = other[random_.randrange(len(other) + 1) :][: random_.choice((1, 8, 64, 512))]
        elif change == 6:
            content[start:end] = random_.choice(TOKENS)
        else:
            content[start:start] = random_.choice(TOKENS)
    return bytes(content)


# --- Targets --------------------------------------------------------------------------------------------------------------


def put(content: bytes, folder: Path, name: str) -> Path:
    path = folder / "work" / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(content)
    return path


def files(*patterns: str) -> Callable[[Path], list[bytes]]:
    """The contents of files below the folder."""
    return lambda folder: [path.read_bytes() for pattern in patterns for path in sorted(folder.glob(pattern))]


def json_files(*patterns: str) -> Callable[[Path], list[bytes]]:
    """The same for JSON files, without the checksum, which would end each case early."""

    def read(folder: Path) -> list[bytes]:
        values = [json.loads(content) for content in files(*patterns)(folder)]
        return [json.dumps({key: value for key, value in each.items() if key != "checksum"}).encode() for each in values]

    return read


def read_config(content: bytes, folder: Path) -> None:
    from nmt.config.load import load
    from nmt.config.yaml_text import dump

    dump(load(put(content, folder, "x.yaml")))


def read_table(content: bytes, folder: Path, name: str = "x", columns: tuple[int | str, int | str] = (1, 2)) -> None:
    from nmt.config.schema import CleaningConfig, SourceConfig
    from nmt.data.reading import clean_rows
    from nmt.data.sources import open_pairs

    config = SourceConfig(format="tsv", columns=dict(zip(("en", "de"), columns, strict=True)))
    source = open_pairs(config, put(content, folder, name), "en", "de")
    clean_rows(source, CleaningConfig(), [*source.rows()], source.first_line, ("en", "de"))


def read_unknown_table(content: bytes, folder: Path) -> None:
    from nmt.data.inspection import inspect_table

    inspect_table(put(content, folder, "x.csv"))


def read_vocabulary(content: bytes, folder: Path) -> None:
    from nmt.text.vocabulary import Vocabulary

    Vocabulary.load(put(content, folder, "x.vocab.txt"))


def read_subwords(content: bytes, folder: Path) -> None:
    from nmt.config.schema import TokenizerConfig
    from nmt.text.tokenizers import load_pieces, load_tokenizer

    path = put(content, folder, "src.spm.model").parent
    tokenizer = load_tokenizer(TokenizerConfig(kind="bpe"), "en", "src", path)
    tokenizer.join(tokenizer.split("Anna sieht den König."))
    load_pieces(path, "src")


@cache
def model(folder: Path) -> Any:
    from nmt.run.folder import build_model, load_run_config

    return build_model(folder / "run", load_run_config(folder / "run"))


def read_weights(content: bytes, folder: Path) -> None:
    from nmt.run.checkpoint import load_weights

    load_weights(put(content, folder, "model.safetensors").parent, model(folder))


def read_optimizer(content: bytes, folder: Path) -> None:
    import torch

    from nmt.run.checkpoint import load_optimizer

    path = put(content, folder, "optimizer.safetensors").parent
    load_optimizer(path, model(folder), torch.optim.AdamW(model(folder).parameters()))


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
    from nmt.decoding.lexicon import Lexicon

    Lexicon.load(put(content, folder, "lexicon.tsv"))


def read_arrays(content: bytes, folder: Path) -> None:
    from nmt.data.corpus import Sequences

    stem = folder / "work" / "train.src"
    put(content, folder, "train.src.npy")
    if not stem.with_name("train.src.offsets.npy").exists():
        shutil.copyfile(folder / "prepared" / "train.src.offsets.npy", stem.with_name("train.src.offsets.npy"))
    Sequences.load(stem)


def read_vectors(content: bytes, folder: Path) -> None:
    from nmt.text.vocabulary import Vocabulary
    from nmt.training.word_vectors import load_vectors

    load_vectors(put(content, folder, "vectors.txt"), Vocabulary(["Anna", "den", "König"], [0, 3, 2, 1]), 3)


def read_bundle(content: bytes, folder: Path) -> None:
    from nmt.run.bundle import unpacked
    from nmt.run.load import find_run_and_checkpoint

    with unpacked(put(content, folder, "x.nmt")) as run:
        find_run_and_checkpoint(run)


@cache
def translator(folder: Path) -> Any:
    from nmt.run.load import load_translator

    return load_translator(folder / "run", device="cpu")


def translate(content: bytes, folder: Path) -> None:
    from nmt.files import stream_lines

    for lines in stream_lines(io.BufferedReader(io.BytesIO(content[:5000])), "x"):
        for each in translator(folder).translate(lines):
            assert "\n" not in each.text


@cache
def application(folder: Path) -> tuple[Any, asyncio.AbstractEventLoop]:
    """The server's application, started."""
    from nmt.decoding.quality_warnings import WarningChecker
    from nmt.serve.answers import ServedRun
    from nmt.serve.app import Limits, create_app

    run = translator(folder)
    served = ServedRun("run", "en", "de", run, WarningChecker(run.tokenizers, run.vocabularies))
    app, loop = create_app([served], Limits(characters=500), hosts=frozenset({"localhost"})), asyncio.new_event_loop()
    loop.run_until_complete(app.router.lifespan_context(app).__aenter__())
    return app, loop


def request(content: bytes, folder: Path) -> None:
    """First line: method and address; then headers; an empty line; the body."""
    head, _, body = content.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    app, loop = application(folder)
    headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": method.decode("latin-1"),
        "path": path.decode("utf-8", "replace"),
    }
    scope |= {"raw_path": path, "query_string": query, "headers": headers, "client": ("127.0.0.1", 1), "server": ("localhost", 80)}
    scope |= {"asgi": {"version": "3.0"}, "scheme": "http", "root_path": ""}
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    answers: list[Mapping[str, Any]] = []

    async def receive() -> Mapping[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        answers.append(message)

    loop.run_until_complete(app(scope, receive, send))
    status = answers[0]["status"]
    if status >= 400:
        json.loads(b"".join(answer.get("body", b"") for answer in answers[1:]) if method != b"HEAD" else b"{}")
    if status >= 500 and status not in (503, 504):
        raise AssertionError(f"status {status}: {answers}")


def zipped(folder: Path) -> list[bytes]:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_about.txt", "x")
        archive.writestr("pairs.tsv", (folder / "pairs.tsv").read_bytes()[:3000])
    return [stream.getvalue()]


def post(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    return f"POST {path}\nhost: localhost\ncontent-type: {content_type}\n\n".encode() + body


REQUESTS = (
    post("/translate", b'{"q": "Anna sieht uns.", "alternatives": 1, "details": true}'),
    post("/translate", b'{"q": ["a", "b\\nc"], "source": "en", "target": "de"}'),
    post("/translate", b'{"q": "Anna", "prefix": "Sie", "run": "run", "api_key": ""}'),
    post("/alternatives", b'{"q": "Anna", "tokens": ["\xe2\x96\x81"], "alternatives": 2}'),
    post("/translate", b"q=Anna&source=auto&target=de", "application/x-www-form-urlencoded"),
    *(f"GET {path}\nhost: localhost:80\norigin: http://localhost:80\n\n".encode() for path in ("/", "/runs", "/metrics?x=1")),
)
LEXICON = b"source\ttarget\tprobability\tcount\nAnna\tAnna\t0.9000\t9\nsees\tsieht\t0.5000\t4\n"
TARGETS: dict[str, Target] = {
    "configuration": Target(read_config, files("c.json", "run/config.yaml")),
    "table": Target(read_table, lambda folder: [(folder / "pairs.tsv").read_bytes()[:3000]]),
    "table, header": Target(
        partial(read_table, columns=("en", "de")), lambda folder: [b"en\tde\n" + (folder / "pairs.tsv").read_bytes()[:3000]]
    ),
    "table, gz": Target(partial(read_table, name="x.gz"), lambda folder: [compress((folder / "pairs.tsv").read_bytes())]),
    "table, zip": Target(partial(read_table, name="x.zip"), zipped),
    "unknown table": Target(
        read_unknown_table, lambda folder: [(folder / "pairs.tsv").read_bytes()[:3000], b'en,de\n"a, b",c\nd,"e"\n' * 5]
    ),
    "vocabulary": Target(read_vocabulary, files("run/*.vocab.txt")),
    "subword model": Target(read_subwords, files("run/*.spm.model")),
    "weights": Target(read_weights, files("run/checkpoints/*/model.safetensors")),
    "optimizer": Target(read_optimizer, files("run/checkpoints/*/optimizer.safetensors")),
    "pointer": Target(read_pointer, json_files("run/checkpoints/*.json")),
    "progress": Target(read_checkpoint_progress, json_files("run/checkpoints/*/progress.json")),
    "manifest": Target(read_manifest, json_files("run/manifest.json")),
    "checksums": Target(read_checksums, json_files("run/checksums.json", "prepared/checksums.json")),
    "journal": Target(read_journal, files("run/journal.jsonl")),
    "lexicon": Target(read_lexicon, lambda _: [LEXICON]),
    "encoded data": Target(read_arrays, files("prepared/train.src.npy")),
    "word vectors": Target(read_vectors, lambda _: [b"3 3\nAnna 0.1 -2e-3 3\nden 1 2 3\n", b"den 1 2 3\n"]),
    "bundle": Target(read_bundle, files("run.nmt")),
    "sentences": Target(translate, lambda folder: [(folder / "pairs.tsv").read_bytes()[:200], b"Anna sieht 1984.\n"]),
    "request": Target(request, lambda _: REQUESTS),
}


def make_files(folder: Path) -> None:
    """Prepare invented sentence pairs, train a tiny run, and bundle it; nothing if that is done."""
    from nmt.commands import bundle, prepare, train
    from nmt.config.load import config_from_dict

    if (folder / "run.nmt").exists():
        return
    rows = [
        f"{subject} {verb} {thing}.".translate(str.maketrans("öäß", "oas")) + f"\t{subject} {verb} {thing}.\n"
        for subject in SUBJECTS
        for verb in VERBS
        for thing in THINGS
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pairs.tsv").write_text("".join(rows), encoding="utf-8")
    (folder / "c.json").write_text(json.dumps(CONFIG, indent=1), encoding="utf-8")
    config = config_from_dict(CONFIG)
    with contextlib.chdir(folder):
        prepare.run(config, progress=False, overwrite=True)
        shutil.rmtree("run", ignore_errors=True)
        train.run(config, Path("run"), quiet=True)
        bundle.run(Path("run"), Path("run.nmt"))


# --- Running --------------------------------------------------------------------------------------------------------------


def limit_memory() -> None:
    """From now on, this process can have `EXTRA_BYTES` more than it has."""
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + EXTRA_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def run_case(target: Target, content: bytes, folder: Path) -> str | None:
    """None if nmt accepts the input; "refused", or the traceback of a failure."""

    def stop(*_: Any) -> None:
        raise LimitError(f"more than {SECONDS} seconds")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        target.read(content, folder)
    except NmtError as error:
        return "refused" if "\n" not in str(error).replace("\n  ", "") else f"several lines: {error}"
    except (Exception, LimitError):  # noqa: BLE001 - this is what the campaign looks for
        return traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def run_chunk(name: str, seed: int, numbers: range, folder: Path, results: Connection) -> None:
    """Runs in a process of its own: sends the number of each case, then its result."""
    warnings.simplefilter("ignore")
    logging.disable()
    target, work = TARGETS[name], folder / "files"
    seeds = target.seeds(work)
    with contextlib.suppress(NmtError):
        target.read(seeds[0], work)  # loads libraries and models
    limit_memory()
    for number in numbers:
        results.send(number)
        results.send(run_case(target, mutate(seeds, random.Random(f"{seed} {name} {number}")), work))


def run_target(name: str, seed: int, n_cases: int, folder: Path, counts: dict[str, int]) -> None:
    """Run the cases that are left, chunk by chunk; a crash ends the process, and costs only its case."""
    context = multiprocessing.get_context("spawn")
    while counts["cases"] < n_cases:
        numbers = range(counts["cases"], min(n_cases, counts["cases"] + CHUNK))
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=run_chunk, args=(name, seed, numbers, folder, sender))
        process.start()
        sender.close()  # so that the end of the process is the end of the pipe
        with receiver, contextlib.suppress(EOFError):
            while True:
                number: int = receiver.recv()
                result: str | None = "the interpreter crashed"
                counts["cases"] = number + 1
                with contextlib.suppress(EOFError):
                    result = receiver.recv()
                counts["accepted" if result is None else "refused" if result == "refused" else "failed"] += 1
                if result is not None and result != "refused":
                    save_failure(name, seed, number, result, folder)
        process.join()
        save_counts(folder, name, counts)
        if counts["cases"] == numbers.start:
            raise SystemExit(f"{name}: cannot start (status {process.exitcode})")


def save_failure(name: str, seed: int, number: int, text: str, folder: Path) -> None:
    stem = folder / "failures" / f"{''.join(c if c in string.ascii_letters else '-' for c in name)}-{seed}-{number}"
    stem.parent.mkdir(exist_ok=True)
    stem.with_suffix(".txt").write_text(text, encoding="utf-8", errors="replace")
    content = mutate(TARGETS[name].seeds(folder / "files"), random.Random(f"{seed} {name} {number}"))
    stem.with_suffix(".bin").write_bytes(content)


def save_counts(folder: Path, name: str, counts: dict[str, int]) -> None:
    from nmt.files import write_text

    path = folder / "counts.json"
    old = json.loads(path.read_text()) if path.exists() else {}
    write_text(path, json.dumps({**old, name: counts}, indent=1))


def row(name: str, counts: Mapping[str, int]) -> str:
    return f"{name:<16}{counts['cases']:>11,}{counts['accepted']:>11,}{counts['refused']:>11,}{counts['failed']:>8,}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the campaign")
    parser.add_argument("--cases", type=int, default=10_000, help="of each target, with those of earlier calls")
    parser.add_argument("--targets", nargs="+", choices=[*TARGETS], default=[*TARGETS], metavar="NAME", help=", ".join(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    folder = options.output.resolve()
    make_files(folder / "files")
    path = folder / "counts.json"
    all_counts = json.loads(path.read_text()) if path.exists() else {}
    print(f"{'target':<16}{'cases':>11}{'accepted':>11}{'refused':>11}{'failed':>8}")
    total: Counter[str] = Counter()
    for name in options.targets:
        counts = all_counts.get(name, dict.fromkeys(("cases", "accepted", "refused", "failed"), 0))
        run_target(name, options.seed, options.cases, folder, counts)
        total.update(counts)
        print(row(name, counts), flush=True)
    print(row("total", total))
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
