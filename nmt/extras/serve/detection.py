"""Detects in which language of the runs a text is: their vocabularies know how frequent its words
are.
"""

import re
from collections.abc import Iterable, Sequence
from math import exp

from nmt.extras.init.languages import guess_language
from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.schemas import Detection
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import SPECIALS, unigram_log_probs

MAX_CHARACTERS = 1000  # of a text that are read
# Tags, addresses, placeholders, numbers: words of no language.
NO_WORDS = re.compile(r"<[^<>]*>|[!-~]*[0-9@/\\{}%_=][!-~]*")
GUESS = 2.0  # nats that the guess by stop words adds; it decides where languages share a vocabulary
# Nats per character, in units of those of the training data: up to the first a text may be in the
# language, from the second on it is not.
USUAL, UNUSUAL = 1.5, 2.5
OTHER = 0.5  # nats per letter, in these units, that a guess of another language takes
UNKNOWN = 2.2  # those of an unknown word: a text without known words is hardly in the language


class Detector:
    """Knows the languages of some runs; of each, the first run counts."""

    def __init__(self, runs: Iterable[ServedRun]) -> None:
        self._languages: dict[str, tuple[Tokenizer, dict[str, float], float]] = {}
        for run in runs:
            codes, parts = (run.info.source, run.info.target), run.texts.sentence_translator
            both = zip(codes, parts.tokenizers, parts.vocabularies, strict=True)
            for code, tokenizer, vocabulary in both:
                log_probs = dict(zip(vocabulary, unigram_log_probs(vocabulary.counts), strict=True))
                usual = _usual(tokenizer, vocabulary.counts, log_probs)
                self._languages.setdefault(code, (tokenizer, log_probs, usual))

    def __call__(self, text: str) -> list[Detection]:
        """The languages that a text may be in, best first; at least one."""
        text = NO_WORDS.sub(" ", text[:MAX_CHARACTERS])
        text = text.lower() if text.isupper() else text
        guess = guess_language([text])
        rows = []
        for code, (tokenizer, log_probs, usual) in self._languages.items():
            # An unknown word may be a whole text, which has no spaces: each letter counts.
            log_prob = sum(
                log_probs.get(token, UNKNOWN * usual * _length(tokenizer.join([token])))
                for token in tokenizer.split(text)
            )
            length = _length(text)
            unusual = log_prob / length / usual if length else UNUSUAL
            unusual += OTHER * (guess not in (None, *self._languages))
            fit = min(max((UNUSUAL - unusual) / (UNUSUAL - USUAL), 0), 1)
            rows.append((code, log_prob + GUESS * (code == guess), fit))
        best = max(score for _, score, _ in rows)
        total = sum(exp(score - best) for _, score, _ in rows)
        found = [
            Detection(language=code, confidence=round(100 * fit * exp(score - best) / total))
            for code, score, fit in rows
        ]
        found.sort(key=lambda each: -each.confidence)
        return [each for each in found if each.confidence] or found[:1]


def _usual(tokenizer: Tokenizer, counts: Sequence[int], log_probs: dict[str, float]) -> float:
    """The mean log-probability of a character of the training data."""
    rows = [*zip(counts, log_probs.items(), strict=True)][len(SPECIALS) :]
    length = sum(count * _length(tokenizer.join([token])) for count, (token, _) in rows)
    return sum(count * log_prob for count, (_, log_prob) in rows) / max(length, 1)


def _length(text: str) -> int:
    return sum(map(str.isalnum, text))
