"""Warnings about translations that are probably wrong, from their tokens and the vocabularies."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log

from nmt.decoding.forced import ScoredPair
from nmt.decoding.translator import Translation
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import UNK, Vocabulary

SOURCE_CUT, OUTPUT_CUT, REPEATING = "source cut", "output cut", "output repeats"
TARGET_LANGUAGE, ALL_UNKNOWN, MOSTLY_UNKNOWN = (
    "source in target language",
    "source unknown",
    "source mostly unknown",
)
UNKNOWN_GIVEN = "unknown words given"

DESCRIPTIONS: Mapping[str, str] = {
    SOURCE_CUT: "the source is longer than decoding.max_source_tokens and was truncated",
    ALL_UNKNOWN: "no word of the source is in the vocabulary",
    MOSTLY_UNKNOWN: (
        "most words of the source are not in the vocabulary; is it in another language?"
    ),
    TARGET_LANGUAGE: "the source seems to be in the target language already",
    OUTPUT_CUT: (
        "the output reached the maximum length (decoding.max_length_ratio) and was truncated"
    ),
    REPEATING: "the output repeats itself",
    UNKNOWN_GIVEN: "a word of the translation is not in the vocabulary and was scored as <unk>",
}

MAX_CHARACTERS = 400  # of a source, to guess its language
MIN_WORDS = 3  # of a source, to guess its language
MIN_MARGIN = 1.0  # nats per word by which the source must be more probable in the target language
MAX_REPETITIONS = 3  # in a row
MAX_NUMBERS = 10  # of lines in a message
MAX_PERIOD = 20  # tokens in a repeated sequence


def warnings_of_pair(pair: ScoredPair) -> list[str]:
    """Of a given translation: keys of `DESCRIPTIONS`."""
    found = {SOURCE_CUT: pair.src_cut, UNKNOWN_GIVEN: bool(pair.unknown)}
    return [warning for warning, holds in found.items() if holds]


class WarningChecker:
    """Checks translations; knows the two languages by the frequencies of their words."""

    def __init__(
        self, tokenizers: tuple[Tokenizer, Tokenizer], vocabularies: tuple[Vocabulary, Vocabulary]
    ) -> None:
        """Both are (source, target)."""
        self._tokenizers, self._vocabularies = tokenizers, vocabularies
        self._log_probs = [_unigram_log_probs(vocabulary.counts) for vocabulary in vocabularies]

    def warnings(self, translation: Translation) -> list[str]:
        """Keys of `DESCRIPTIONS`."""
        source_repeats = repeats(translation.src_tokens, MAX_REPETITIONS)
        found = {
            SOURCE_CUT: translation.src_cut,
            OUTPUT_CUT: not translation.complete,
            REPEATING: repeats(translation.tokens, MAX_REPETITIONS) and not source_repeats,
        }
        warnings = [warning for warning, holds in found.items() if holds]
        return [*self._check_source(translation), *warnings]

    def _check_source(self, translation: Translation) -> list[str]:
        """At most one warning."""
        words = [token for token in translation.src_tokens if any(map(str.isalpha, token))]
        n_known = sum(word in self._vocabularies[0] for word in words)
        if self._is_target_language(translation.source[:MAX_CHARACTERS]):
            return [TARGET_LANGUAGE]
        if words and not n_known:
            return [ALL_UNKNOWN]
        if len(words) >= MIN_WORDS and n_known < len(words) / 2:
            return [MOSTLY_UNKNOWN]
        return []

    def _is_target_language(self, text: str) -> bool:
        """Never True with a shared vocabulary, whose frequencies are those of both languages."""
        n_words = len(text.split())
        if n_words < MIN_WORDS:
            return False
        parts = zip(self._tokenizers, self._vocabularies, self._log_probs, strict=True)
        as_source, as_target = (
            sum(log_probs[index] for index in vocabulary.ids(tokenizer.split(text)))
            for tokenizer, vocabulary, log_probs in parts
        )
        return as_target - as_source > MIN_MARGIN * n_words


def _unigram_log_probs(counts: Sequence[int]) -> list[float]:
    """Of each id, from its count in the training data."""
    total = max(sum(counts), 1)
    log_probs = [log(max(count, 0.5) / total) for count in counts]
    log_probs[UNK] = min(log_probs)  # <unk> may be frequent, but each unknown word is rare
    return log_probs


def describe(warning: str, numbers: Sequence[int], unit: str) -> str:
    """One line: the numbers of the sentences, and the warning. unit: "line" or "sentence"."""
    shown = ", ".join(map(str, numbers[:MAX_NUMBERS]))
    more = f" and {len(numbers) - MAX_NUMBERS:,} more" if len(numbers) > MAX_NUMBERS else ""
    return f"{unit}{'s' if len(numbers) > 1 else ''} {shown}{more}: {DESCRIPTIONS[warning]}"


def repeats(tokens: Sequence[str], times: int) -> bool:
    """Whether a sequence of tokens occurs `times` times in a row (a single token `times` + 1 times,
    since words may be doubled).
    """
    for period in range(1, min(MAX_PERIOD, len(tokens) // times) + 1):
        # Consecutive tokens that equal the token one period later.
        needed = period * (times - 1 if period > 1 else times)
        differing = [
            -1,
            *(i for i in range(len(tokens) - period) if tokens[i] != tokens[i + period]),
            len(tokens) - period,
        ]
        if any(after - before > needed for before, after in pairwise(differing)):
            return True
    return False
