"""Write a large corpus, to measure how commands grow with it: variations of the pairs of a smaller
English-German one.

    python scripts/grow_corpus.py deu-eng.zip /tmp/grown.tsv --pairs 1700000 [--seed 1]

The corpus is repeated. The first copy has the pairs as they are. In each other copy, names,
numbers, weekdays, months, cities and languages are replaced by others, the same on both sides; a
pair with none of them is put into a sentence that has one ("Anna said ...", "Anna sagte ...").
Names are made of syllables, so the vocabulary grows as that of real text does: with many rare
words.

Pairs that a chain of shared sentences links get the same replacements within a copy. So each copy
shares sentences as the original does, and almost no pair occurs twice. The same arguments always
give the same file.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.config.schema import SourceConfig
from nmt.data.formats import open_pairs
from nmt.data.reading import Pair
from nmt.data.splitting import connected_components, fingerprint, number_sentences, sentence_key
from nmt.files import replacing

NAMES = "Tom|Mary|Maria|John|Johannes|Jim|Bob|Ken|Mike|Bill|Jack|Jane|Lisa|Emily|Alice|Sami|Layla|Peter|Paul|Anna|Lucy|Susan"
GROUPS = (  # words that can take each other's place, in both languages
    (
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday|Montag Dienstag Mittwoch "
        "Donnerstag Freitag Samstag Sonntag"
    ),
    "January February March April June July August September October November December"
    "|Januar Februar März April Juni Juli August September Oktober November Dezember",
    (
        "Boston Paris London Berlin Tokyo Chicago Kyoto Vienna Rome|Boston Paris London Berlin "
        "Tokio "
        "Chicago Kyoto Wien Rom"
    ),
    "French English Japanese Spanish Italian|Französisch Englisch Japanisch Spanisch Italienisch",
)
FRAMES = (
    "{name} said: {text}|{name} sagte: {text}",
    "{name} wrote: {text}|{name} schrieb: {text}",
    (
        "{name} asked for {number} seconds of silence, then said: {text}|{name} bat um {number} "
        "Sekunden Ruhe und sagte dann: {text}"
    ),
    "On page {number}, {name} reads: {text}|Auf Seite {number} liest {name}: {text}",
    "{text} That was what {name} heard.|{text} Das war es, was {name} hörte.",
    "{text} {name} repeated it {number} times.|{text} {name} wiederholte es {number} Mal.",
)
ONSETS = "b br d dr f fl g gr h j k kl l m n p pr r s st t tr v w z".split()  # noqa: SIM905
VOWELS = ["a", "e", "i", "o", "u", "au", "ei", "ie"]
CODAS = ["", "", "", "l", "n", "r", "s", "nd", "rk", "ck"]

NAME = re.compile(rf"\b({NAMES})\b")
NUMBER = re.compile(r"\b\d+\b")


def _word_table() -> dict[tuple[str, str], tuple[int, int]]:
    """The group and the index of each word that can be replaced, by side and word."""
    return {
        (side, word): (number, index)
        for number, group in enumerate(GROUPS)
        for side, words in zip(("src", "tgt"), group.split("|"), strict=True)
        for index, word in enumerate(words.split())
    }


WORDS = _word_table()
WORD = re.compile(rf"\b({'|'.join(sorted({word for _, word in WORDS}))})\b")


@lru_cache(maxsize=100_000)
def make_name(number: int) -> str:
    """A name of two to four syllables; small numbers give frequent names, as a few names are
    frequent in real text.
    """
    random = Random(number)
    parts = (
        random.choice(ONSETS) + random.choice(VOWELS) + random.choice(CODAS)
        for _ in range(random.randint(2, 4))
    )
    return "".join(parts).capitalize()


class Variation:
    """Replacements for the pairs of one group in one copy; see the module."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def vary(self, pair: Pair) -> Pair:
        """The pair with its names, numbers and words replaced, or within a sentence that has
        some.
        """
        src, tgt = pair
        named = [name for name in dict.fromkeys(NAME.findall(src)) if name in tgt]
        numbers = [
            number for number in dict.fromkeys(NUMBER.findall(src)) if number in NUMBER.findall(tgt)
        ]
        if not named and not numbers:
            source_frame, target_frame = FRAMES[self._draw("frame", len(FRAMES))].split("|")
            values = {"name": self._name("frame"), "number": 2 + self._draw("number", 998)}
            return source_frame.format(text=self._words("src", src), **values), target_frame.format(
                text=self._words("tgt", tgt), **values
            )
        table = {name: self._name(name) for name in named}
        table |= {
            number: str(int(number) % 10_000 + 1 + self._draw(number, 10_000)) for number in numbers
        }
        replaced = re.compile(
            rf"\b({'|'.join(map(re.escape, table))})(s?)\b"
        )  # German has genitives: "Toms Hund"
        varied = (replaced.sub(lambda match: table[match[1]] + match[2], text) for text in pair)
        return self._words("src", next(varied)), self._words("tgt", next(varied))

    def _words(self, side: str, text: str) -> str:
        def replacement(match: re.Match[str]) -> str:
            if (side, match[1]) not in WORDS:
                return match[1]
            group, index = WORDS[side, match[1]]
            words = GROUPS[group].split("|")[side == "tgt"].split()
            return words[(index + self._draw(f"group {group}", len(words))) % len(words)]

        return WORD.sub(replacement, text)

    def _name(self, purpose: str) -> str:
        # A third of the draws each from a hundred, ten thousand and a million names: the
        # frequencies of words fall steeply.
        return make_name(self._draw(purpose, 10 ** (2 + 2 * self._draw(f"rank {purpose}", 3))))

    def _draw(self, purpose: str, n_values: int) -> int:
        return int.from_bytes(fingerprint(f"{self._seed} {purpose}"), "little") % n_values


def grow(pairs: Sequence[Pair], groups: Sequence[int], seed: int) -> Iterator[Pair]:
    """The pairs, then variations of them without end. groups: of linked pairs."""
    yield from pairs
    n_groups = max(groups) + 1
    for copy in count(1):
        for pair, group in zip(pairs, groups, strict=True):
            yield Variation((seed << 64) + copy * n_groups + group).vary(pair)


def link_pairs(pairs: Sequence[Pair]) -> list[int]:
    """A number for each pair, equal if a chain of shared sentences links them."""
    src, tgt = (
        np.array(
            [int.from_bytes(fingerprint(sentence_key(pair[side])), "little") for pair in pairs],
            np.uint64,
        )
        for side in (0, 1)
    )
    return [
        int(component)
        for component in connected_components(number_sentences(src), number_sentences(tgt))
    ]


def main() -> None:
    """Parse the command line and write the corpus."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "source",
        type=Path,
        help="English-German pairs: a .zip from manythings.org, or a table with tabs",
    )
    parser.add_argument("output", type=Path, help="a table with tabs; an existing file is replaced")
    parser.add_argument("--pairs", type=int, required=True, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    source = open_pairs(SourceConfig(path=arguments.source), arguments.source, "en", "de")
    pairs = [source.pair(row) for row in source.rows()]
    grown = islice(grow(pairs, link_pairs(pairs), arguments.seed), arguments.pairs)
    with (
        replacing(arguments.output) as path,
        path.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(f"{src}\t{tgt}\n" for src, tgt in grown)


if __name__ == "__main__":
    main()
