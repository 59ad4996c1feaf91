"""Detects in which language of the runs a text is: their vocabularies know how frequent its words
are.
"""

import re
from collections.abc import Iterable
from math import exp

from nmt.data.checks import guess_language
from nmt.decoding.frequencies import unigram_log_probs
from nmt.extras.serve.schemas import Detection
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import SPECIALS, Vocabulary

MAX_CHARACTERS = 1000  # of a text that are read
# Tags, addresses, placeholders, numbers: words of no language.
NO_WORDS = re.compile(r"<[^<>]*>|[!-~]*[0-9@/\\{}%_=][!-~]*")
GUESS = 2.0  # nats that the guess by stop words adds; it decides where languages share a vocabulary
# Nats per character, in units of those of the training data: up to the first a text may be in the
# language, from the second on it is not.
USUAL, UNUSUAL = 1.5, 2.5


class _Language:
    """How frequent the tokens of a language are."""

    def __init__(self, code: str, tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
        self.code, self.tokenizer, self.vocabulary = code, tokenizer, vocabulary
        self.log_probs = unigram_log_probs(vocabulary.counts)
        rows = [*zip(vocabulary, vocabulary.counts, self.log_probs, strict=True)][len(SPECIALS) :]
        n_characters = sum(count * _length(tokenizer.join([token])) for token, count, _ in rows)
        self.usual = sum(count * each for _, count, each in rows) / max(n_characters, 1)

    def score(self, text: str) -> tuple[float, float]:
        """The log-probability of a text, and from 0 to 1 how well it fits the training data."""
        tokens = self.tokenizer.split(text)
        n_known = sum(_length(token) for token in tokens if token in self.vocabulary)
        log_prob = sum(self.log_probs[index] for index in self.vocabulary.ids(tokens))
        unusual = log_prob / max(_length(text), 1) / self.usual
        fit = min(max((UNUSUAL - unusual) / (UNUSUAL - USUAL), 0), 1)
        return log_prob, fit * n_known / max(sum(map(_length, tokens)), 1)


def _length(text: str) -> int:
    return sum(map(str.isalnum, text))


class Detector:
    """Knows some languages.

    Args:
        languages: code, tokenizer and vocabulary of each; of a code the first counts.
    """

    def __init__(self, languages: Iterable[tuple[str, Tokenizer, Vocabulary]]) -> None:
        first: dict[str, tuple[str, Tokenizer, Vocabulary]] = {}
        for row in languages:
            first.setdefault(row[0], row)
        self._languages = [_Language(*row) for row in first.values()]

    def __call__(self, text: str) -> list[Detection]:
        """The languages that a text may be in, best first; at least one."""
        text = NO_WORDS.sub(" ", text[:MAX_CHARACTERS])
        text = text.lower() if text.isupper() else text
        guess = guess_language([text])
        rows = [(each.code, *each.score(text)) for each in self._languages]
        rows = [(code, score + GUESS * (code == guess), fit) for code, score, fit in rows]
        rows.sort(key=lambda row: -row[1])
        total = sum(exp(score - rows[0][1]) for _, score, _ in rows)
        found = [
            Detection(language=code, confidence=round(100 * fit * exp(score - rows[0][1]) / total))
            for code, score, fit in rows
        ]
        found.sort(key=lambda each: -each.confidence)
        return [each for each in found if each.confidence] or found[:1]
