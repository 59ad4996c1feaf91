"""Measure how well a run translates texts that are more than bare sentences.

    python scripts/texts.py [RUN] [--data FOLDER] [--only NAME]...

The texts are made from the test set of the run's prepared data:

- paragraphs: 500 lines of four sentences, and all lines of the test set, whole and split
- capitals: 300 sentences in capital letters; BLEU ignores case
- items: 200 sentences, in which names became placeholders, addresses, dates and so on. Names are
  put back before BLEU is computed.
- numbers: sentences with numbers of three digits or more, dates, times and decimals
- tags: 150 sentences with a name in tags, alone, nested and beside an empty tag
- terms: a noun of the reference is the term, first those that the run translates otherwise; then
  new compounds in their place

Seconds are CPU time, without loading.
"""

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.data.corpus import Corpus, read_sentences
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import bleu
from nmt.run.folder import find_run, load_run_config
from nmt.run.load import load_translator
from nmt.texts.glossary import Glossary
from nmt.texts.translator import TextTranslator

ITEMS = (
    "{name}", "%s", "%(user)s", "{{ user }}", "{0}", "https://example.org/a?b=1&c=2",
    "info@example.com", "3,450.75", "2024-05-17", "v2.3.1", "@john_doe", "&APP_NAME;", "%1$s",
    "1984", "XR-200-B", "${HOME}",
)  # fmt: skip
NEW_NAMES = (
    "Brankovar", "Lumetia", "Ostrelle", "Quindara", "Zherova", "Malthorn", "Isandri", "Korubo",
    "Fenwarde", "Tavrinsk", "Ubolani", "Perchwitz", "Yamasero", "Dolgwyn", "Arbenku", "Sileste",
)  # fmt: skip
COMPOUNDS = (
    "Freigabeprotokoll", "Lastschriftmandat", "Prüfplakette", "Kundenkonto", "Zählerstand",
    "Drehmomentschlüssel", "Xylotrop", "SwiftPay", "Hubwagen", "Stammdatenblatt",
)  # fmt: skip
TAGS = (
    ("<b>{}</b>", "<b>{}</b>"),
    ('<a href="https://example.org/1">{}</a>', '<a href="https://example.org/1">{}</a>'),
    ("<i><b>{}</b></i>", "<i><b>{}</b></i>"),
    ('<img src="a.png"/><b>{}</b>', "<b>{}</b>"),
)  # as written around a name, and what must stand around it in the translation
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)+|\d{3,}")
WORD = re.compile(r"[^\W\d_]+")
N_TRAIN = 40_000  # pairs from which the terms are learned
Pairs = list[tuple[str, str]]


def report(name: str, *values: object) -> None:
    print(f"{name:<44}", *values, flush=True)


class Measurement:
    """The translations of a run, with and without the treatment of texts."""

    def __init__(self, run: Path, data: Path | None) -> None:
        self.config = load_run_config(run)
        self.prepared = data or self.config.prepared_folder
        self.sentences: Translator = load_translator(run, device="cpu")
        self.texts = TextTranslator(self.sentences)
        sources, references = (
            read_sentences(self.prepared, "test", side) for side in ("src", "tgt")
        )
        self.pairs: Pairs = [*zip(sources, references, strict=True)]
        self.texts.translate(sources[:64])  # sets up

    def translate(
        self, translator: Translator | TextTranslator, texts: Sequence[str]
    ) -> tuple[list[str], float]:
        """The translations, and CPU seconds."""
        start = time.process_time()
        outputs = [translation.text for translation in translator.translate(texts)]
        return outputs, time.process_time() - start

    def bleu(
        self, outputs: Sequence[str], references: Sequence[str], *, lower: bool = False
    ) -> str:
        value = bleu(outputs, references, lower, self.config.data.tgt_language)
        return f"BLEU {value:.2f}"

    def paragraphs(self) -> None:
        groups = [self.pairs[i : i + 4] for i in range(0, min(len(self.pairs), 2000) - 3, 4)]
        lines = [" ".join(source for source, _ in group) for group in groups]
        references = [" ".join(reference for _, reference in group) for group in groups]
        alone, seconds = self.translate(
            self.sentences, [source for group in groups for source, _ in group]
        )
        single = [" ".join(alone[i : i + 4]) for i in range(0, len(alone), 4)]
        n_words = sum(len(text.split()) for text in single)
        report(
            "four sentences a line: each alone", self.bleu(single, references), f"{seconds:.1f} s"
        )
        for name, translator in (("whole line", self.sentences), ("split", self.texts)):
            outputs, seconds = self.translate(translator, lines)
            share = sum(len(text.split()) for text in outputs) / n_words
            score = self.bleu(outputs, references)
            report(f"four sentences a line: {name}", score, f"{share:.1%} of it, {seconds:.1f} s")
        sources, references = (list(side) for side in zip(*self.pairs, strict=True))
        found = [self.translate(translator, sources) for translator in (self.sentences, self.texts)]
        for name, (outputs, seconds) in zip(("whole", "split"), found, strict=True):
            report(f"test set: {name}", self.bleu(outputs, references), f"{seconds:.1f} s")
        changed = sum(a != b for a, b in zip(found[0][0], found[1][0], strict=True))
        report("test set: lines that differ", changed)

    def capitals(self) -> None:
        sources, references = (list(side)[:300] for side in zip(*self.pairs, strict=True))
        usual, _ = self.translate(self.sentences, sources)
        report("usual case", self.bleu(usual, references, lower=True))
        capitals = [source.upper() for source in sources]
        for name, translator in (("sentences", self.sentences), ("texts", self.texts)):
            outputs, _ = self.translate(translator, capitals)
            report(f"capitals: {name}", self.bleu(outputs, references, lower=True))

    def names(self) -> Iterator[tuple[str, str, list[str]]]:
        """Pairs with the names that stand once in both sides, not at the begin of the source."""
        for source, reference in self.pairs:
            names = [
                word
                for word in dict.fromkeys(WORD.findall(source)[1:])
                if word.istitle() and len(word) > 2
                and all(WORD.findall(text).count(word) == 1 for text in (source, reference))
            ]  # fmt: skip
            if names:
                yield source, reference, names

    def items(self) -> None:
        draw = random.Random(3)
        rows = [*self.names()]
        draw.shuffle(rows)
        rows = rows[:200]
        sources, references = [row[0] for row in rows], [row[1] for row in rows]
        plain, base = self.translate(self.sentences, sources)
        report(f"{len(rows)} sentences with names", self.bleu(plain, references), f"{base:.1f} s")
        for what, items in (("items", ITEMS), ("new names", NEW_NAMES)):
            chosen = [draw.sample(items, len(names)) for _, _, names in rows]
            self._in_place_of_names(what, rows, chosen, base)

    def _in_place_of_names(
        self,
        what: str,
        rows: Sequence[tuple[str, str, list[str]]],
        chosen: Sequence[Sequence[str]],
        base: float,
    ) -> None:
        """base: the seconds of the sentences with their names."""
        changed = [
            _replace(source, names, items)
            for (source, _, names), items in zip(rows, chosen, strict=True)
        ]
        references = [row[1] for row in rows]
        for name, translator in (("sentences", self.sentences), ("texts", self.texts)):
            outputs, seconds = self.translate(translator, changed)
            lacking = [
                (source, output)
                for source, output, items in zip(changed, outputs, chosen, strict=True)
                if any(output.count(item) != source.count(item) for item in items)
            ]
            back = [
                _put_back(output, items, names)
                for output, (_, _, names), items in zip(outputs, rows, chosen, strict=True)
            ]
            kept = f"all kept in {1 - len(lacking) / len(rows):.1%}"
            score = self.bleu(back, references)
            report(f"{what} in place of names: {name}", score, kept, f"{seconds / base:.2f}x")
            for pair in lacking[:3] if translator is self.texts else ():
                print("   ", *pair, sep=" | ")

    def numbers(self) -> None:
        rows = [pair for pair in self._all_pairs() if NUMBER.search(pair[0])][:50]
        sources, references = (list(side) for side in zip(*rows, strict=True))
        for name, translator in (("sentences", self.sentences), ("texts", self.texts)):
            outputs, _ = self.translate(translator, sources)
            kept = [
                all(number in output for number in NUMBER.findall(source))
                for source, output in zip(sources, outputs, strict=True)
            ]
            share = f"kept in {sum(kept) / len(kept):.1%}"
            report(f"{len(rows)} with numbers: {name}", self.bleu(outputs, references), share)

    def _all_pairs(self) -> Pairs:
        dev = (read_sentences(self.prepared, "dev", side) for side in ("src", "tgt"))
        return [*self.pairs, *zip(*dev, strict=True)]

    def tags(self) -> None:
        rows = [*self.names()][:150]
        forms = [TAGS[i % len(TAGS)] for i in range(len(rows))]
        sources = [
            _replace(source, names[:1], [before.format(names[0])])
            for (source, _, names), (before, _) in zip(rows, forms, strict=True)
        ]
        outputs, _ = self.translate(self.texts, sources)
        plain, _ = self.translate(self.sentences, [row[0] for row in rows])
        formed = [
            _tags(source) == _tags(output) for source, output in zip(sources, outputs, strict=True)
        ]
        right = [
            after.format(names[0]) in output
            for output, (_, _, names), (_, after) in zip(outputs, rows, forms, strict=True)
            if names[0] in output
        ]
        bare = [re.sub(r"<[^>]*>", "", output) for output in outputs]
        references = [row[1] for row in rows]
        report(f"{len(rows)} without tags", self.bleu(plain, references))
        shares = (
            f"tags kept {sum(formed) / len(rows):.1%}, right word {sum(right) / len(right):.1%}"
        )
        report(f"{len(rows)} with tags", self.bleu(bare, references), shares)

    def terms(self) -> None:
        outputs, _ = self.translate(self.sentences, [source for source, _ in self.pairs])
        found = [*self._nouns(outputs)]
        lacking = [row for row in found if not _has(row[4], row[3])][:150]
        having = [row for row in found if _has(row[4], row[3])][:50]
        rows = lacking + having
        report(f"{len(rows)} terms", f"right without glossary {len(having) / len(rows):.1%}")
        self._with_terms("nouns", [row[:4] for row in rows])
        new = [
            (source, reference.replace(noun, compound), word, compound)
            for i, (source, reference, word, noun, _) in enumerate([*having, *lacking[:50]])
            for compound in [COMPOUNDS[i % len(COMPOUNDS)]]
        ]
        self._with_terms("new compounds", new)

    def _with_terms(self, title: str, rows: Sequence[tuple[str, str, str, str]]) -> None:
        references = [reference for _, reference, _, _ in rows]
        plain, _ = self.translate(self.sentences, [source for source, *_ in rows])
        right = sum(_has(output, row[3]) for output, row in zip(plain, rows, strict=True))
        report(f"{title}: no glossary", self.bleu(plain, references), f"{right / len(rows):.1%}")
        outputs: list[str] = []
        seconds = 0.0
        for source, _, word, term in rows:  # each with a glossary of its own
            translator = self.texts.with_glossary(Glossary.of({word: term}))
            texts, used = self.translate(translator, [source])
            outputs, seconds = outputs + texts, seconds + used
        _, alone = self._one_by_one([source for source, *_ in rows])
        exact, ending = (
            sum(_has(output, row[3], form) for output, row in zip(outputs, rows, strict=True))
            for form in ("", r"\w{0,2}")
        )
        shares = f"{exact / len(rows):.1%}, also with an ending {ending / len(rows):.1%}"
        figures = f"{shares}, {seconds / alone:.2f}x one by one"
        report(f"{title}: glossary", self.bleu(outputs, references), figures)

    def _one_by_one(self, texts: Sequence[str]) -> tuple[list[str], float]:
        results = [self.translate(self.sentences, [text]) for text in texts]
        return [text for (text,), _ in results], sum(seconds for _, seconds in results)

    def _nouns(self, outputs: Sequence[str]) -> Iterator[tuple[str, str, str, str, str]]:
        """(source, reference, word, noun, output): a word of the source that seems to be the noun.
        Nouns are capitalized, as in German.
        """
        both: Counter[tuple[str, str]] = Counter()
        words: Counter[str] = Counter()
        nouns: Counter[str] = Counter()
        for source, reference in self._train_pairs():
            src = {word.lower() for word in WORD.findall(source) if len(word) > 3}
            tgt = {word for word in WORD.findall(reference) if word.istitle() and len(word) > 3}
            words.update(src)
            nouns.update(tgt)
            both.update((word, noun) for word in src for noun in tgt)
        for (source, reference), output in zip(self.pairs, outputs, strict=True):
            candidates = [
                (both[word, noun] ** 2 / (words[word] + 3) / (nouns[noun] + 3), word, noun)
                for noun in WORD.findall(reference)[1:]
                if noun.istitle() and len(noun) > 3 and reference.count(noun) == 1
                for word in WORD.findall(source)
                if word.islower() and len(word) > 3 and source.count(word) == 1
                and both[word, noun] > 1
            ]  # fmt: skip
            if candidates and max(candidates)[0] > 0.003:
                _, word, noun = max(candidates)
                yield source, reference, word, noun, output

    def _train_pairs(self) -> Iterator[tuple[str, str]]:
        corpus, translator = Corpus.load(self.prepared, "train"), self.sentences
        for i in range(min(N_TRAIN, len(corpus.src))):
            src, tgt = (
                tokenizer.join(vocabulary.tokens(side[i].tolist()))
                for tokenizer, vocabulary, side in zip(
                    translator.tokenizers,
                    translator.vocabularies,
                    (corpus.src, corpus.tgt),
                    strict=True,
                )
            )
            yield src, tgt


def _replace(text: str, names: Sequence[str], items: Sequence[str]) -> str:
    for name, item in zip(names, items, strict=True):
        text = re.sub(rf"\b{name}\b", item.replace("\\", r"\\"), text)
    return text


def _put_back(text: str, items: Sequence[str], names: Sequence[str]) -> str:
    for item, name in zip(items, names, strict=True):
        text = text.replace(item, name)
    return text


def _tags(text: str) -> list[str]:
    return re.findall(r"<[^>]*>", text)


def _has(text: str, term: str, ending: str = "") -> bool:
    return re.search(rf"(?<!\w){re.escape(term)}{ending}(?!\w)", text) is not None


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["paragraphs", "capitals", "items", "numbers", "tags", "terms"]
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="the prepared data")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME")
    options = parser.parse_args()
    measurement = Measurement(find_run(options.run), options.data)
    for name in options.only or names:
        measure: Callable[[], None] = getattr(measurement, name)
        measure()


if __name__ == "__main__":
    main()
