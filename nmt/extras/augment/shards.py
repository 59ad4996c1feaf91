"""Translate many sentences into a folder of shards. A shard is written whole or not at all, so a
stopped job loses at most one.
"""

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from nmt.decoding.output import MAX_REPETITIONS, repeats
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.extras.augment.pairs import REPEATING, TRUNCATED
from nmt.files import write_text
from nmt.lines import read_lines

# enough for batches of similar lengths; some of the keys of `decoding` make a translation depend on
# it
SHARD_SENTENCES = 2048
SECONDS_FILE = "seconds.txt"  # a line for each shard


def plan_shards(folder: Path, texts: Sequence[str]) -> list[tuple[Path, Sequence[str]]]:
    """The file of each shard, and the sentences to translate into it."""
    starts = range(0, len(texts), SHARD_SENTENCES)
    return [
        (folder / f"{number:06}.txt", texts[start : start + SHARD_SENTENCES])
        for number, start in enumerate(starts)
    ]


def write_shard(path: Path, texts: Sequence[str], translator: Translator) -> None:
    """Translate `texts` into a file: one line each; after a tab, what is wrong with the
    translation.

    Raises:
        OSError: the file cannot be written.
        TooLargeError: a text does not fit into memory, even alone.
    """
    start_time = time.perf_counter()
    path.parent.mkdir(parents=True, exist_ok=True)
    translations = translator.translate(texts)
    lines = [
        f"{translation.text}\t{problem}" if (problem := _problem(translation)) else translation.text
        for translation in translations
    ]
    # First the time: after a crash between the two, the shard is translated again, and both times
    # count.
    times = [*_times(path.parent), f"{time.perf_counter() - start_time:.2f}"]
    write_text(path.parent / SECONDS_FILE, "".join(f"{seconds}\n" for seconds in times))
    write_text(path, "".join(f"{line}\n" for line in lines))


def seconds_of_shards(folder: Path) -> float:
    """The time to translate the shards of a folder, by all calls together."""
    return sum(map(float, _times(folder)))


def _times(folder: Path) -> list[str]:
    """The lines of the file of times, without those that a crash of an older version damaged."""
    path = folder / SECONDS_FILE
    lines = path.read_text("utf-8", errors="replace").split("\n") if path.exists() else []
    return [line for line in lines if re.fullmatch(r"\d+\.\d\d", line)]


def read_shards(folder: Path, texts: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Each text with its translation, and what is wrong with that, or "". Raises: DataError if a
    shard is missing or damaged.
    """
    for path, shard in plan_shards(folder, texts):
        lines = read_lines(
            path, needs_final_line_feed=True, advice="delete it to translate it again"
        )
        if len(lines) != len(shard):
            raise DataError(
                f"{path}: has {len(lines)} lines instead of {len(shard)}; delete it to translate "
                "it again"
            )
        for text, line in zip(shard, lines, strict=True):
            translation, _, problem = line.partition("\t")
            yield text, translation, problem


def _problem(translation: Translation) -> str:
    if translation.src_cut or not translation.complete:
        return TRUNCATED
    if repeats(translation.tokens, MAX_REPETITIONS) and not repeats(
        translation.src_tokens, MAX_REPETITIONS
    ):
        return REPEATING
    return ""
