"""Warnings about translations that are probably wrong, from their tokens and the vocabularies."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from nmt.decoding.forced import ScoredPair
from nmt.decoding.translation import UNKNOWN, Translation
from nmt.decoding.translator import WordlessLines
from nmt.text.tokenizers import Tokenizer, has_letters
from nmt.text.vocabulary import MIN_MARGIN, Vocabulary, WordFrequencies
from nmt.texts.differences import differences
from nmt.texts.sentences import END_MARKS, has_ordinals, most_sentences, n_sentences

SOURCE_CUT, OUTPUT_CUT, REPEATING = "source cut", "output cut", "output repeats"
TARGET_LANGUAGE, ALL_UNKNOWN, MOSTLY_UNKNOWN = (
    "source in target language",
    "source unknown",
    "source mostly unknown",
)
CAPITALS, WORD_UNKNOWN = "source in capitals", "word unknown"
SENTENCES_LOST, ITEMS_CHANGED, WORDLESS = "sentences lost", "items changed", "no words"
UNKNOWN_GIVEN = "unknown words given"
PLACED = (
    "the model lost a placeholder, address, name or number; it now stands where it seems to "
    "belong; check its place"
)
TERM_MISSING = "the glossary's {target!r} for {source!r} is missing"
LOW_CONFIDENCE = "the confidence is below {least:g}; a person should read the translation"

# What a warning says. Those without a row here say it themselves.
DESCRIPTIONS: Mapping[str, str] = {
    SOURCE_CUT: "the source is longer than decoding.max_source_tokens and was truncated",
    CAPITALS: (
        "the source, or the start of each word, is in capital letters, unlike the training data; "
        "write it in its usual case"
    ),
    ALL_UNKNOWN: "no word of the source is in the vocabulary",
    MOSTLY_UNKNOWN: (
        "most words of the source are not in the vocabulary; is it in another language?"
    ),
    TARGET_LANGUAGE: "the source seems to be in the target language already",
    WORD_UNKNOWN: (
        "a word of the source, or a part of one, is not in the vocabulary, and the translation has "
        "no copy of it"
    ),
    SENTENCES_LOST: (
        "the source seems to have several sentences, and the translation to lack some; compare them"
    ),
    ITEMS_CHANGED: (
        "a placeholder, tag, address, emoji or number of the source is not in the translation, or "
        "not in the same form, or one is there that the source has not; check them"
    ),
    WORDLESS: "the source has no words, but the translation has some or is empty",
    OUTPUT_CUT: (
        "the output reached the maximum length (decoding.max_length_ratio) and was truncated"
    ),
    REPEATING: "the output repeats itself",
    UNKNOWN_GIVEN: "a word of the translation is not in the vocabulary and was scored as <unk>",
}

MAX_CHARACTERS = 400  # of a source, to guess its language
MIN_WORDS = 3  # of a source, to guess its language
MIN_TARGET = 0.75  # of the words of a source, for the target language
MIN_LENGTH = 0.6  # of the expected length, for a translation that lacks no sentence
MAX_REPETITIONS = 3  # in a row
MAX_NUMBERS = 10  # of lines in a message
MAX_PERIOD = 20  # tokens in a repeated sequence


def warnings_of_pair(pair: ScoredPair) -> list[str]:
    """Of a given translation: keys of `DESCRIPTIONS`."""
    found = {SOURCE_CUT: pair.src_cut, UNKNOWN_GIVEN: bool(pair.unknown)}
    return [warning for warning, holds in found.items() if holds]


class WarningChecker:
    """Checks translations; knows the two languages by the frequencies of their words.

    Args:
        tokenizers, vocabularies: (source, target).

    Attributes:
        frequencies: of the words of (source, target).
    """

    def __init__(
        self, tokenizers: tuple[Tokenizer, Tokenizer], vocabularies: tuple[Vocabulary, Vocabulary]
    ) -> None:
        self._tokenizers, self._vocabularies = tokenizers, vocabularies
        self.frequencies = [*map(WordFrequencies, tokenizers, vocabularies)]
        self._wordless = WordlessLines(*vocabularies)
        n_tokens = [sum(vocabulary.counts) for vocabulary in vocabularies]
        self._length_ratio = n_tokens[1] / max(n_tokens[0], 1)  # target tokens per source token
        n_ends = [
            sum(
                count
                for token, count in zip(vocabulary, vocabulary.counts, strict=True)
                if token[-1] in END_MARKS
            )
            for vocabulary in vocabularies
        ]
        self._marks_ends = n_ends[1] >= n_ends[0] / 2  # whether the target language does

    def warnings(self, translation: Translation) -> list[str]:
        """Keys of `DESCRIPTIONS`, and those that the translation has."""
        if translation.is_known:
            return []
        source = self._tokenizers[0].normalize(translation.source)
        found = {
            SENTENCES_LOST: self._lacks_sentences(translation),
            ITEMS_CHANGED: bool(differences(source, translation.text.replace(UNKNOWN, ""))),
            WORDLESS: self._wordless.are_copied
            and bool(source)
            and not has_letters(source)
            and (has_letters(translation.text) or not translation.text),
            SOURCE_CUT: translation.src_cut,
            OUTPUT_CUT: not translation.complete,
            REPEATING: repeats(translation.tokens, MAX_REPETITIONS)
            and not repeats(translation.src_tokens, MAX_REPETITIONS),
        }
        warnings = [warning for warning, holds in found.items() if holds]
        return [*self._check_source(translation), *warnings, *translation.warnings]

    def _check_source(self, translation: Translation) -> list[str]:
        """At most one warning."""
        words = [token for token in self._tokens_read(translation) if has_letters(token)]
        n_known = sum(word in self._vocabularies[0] for word in words)
        start = (translation.model_input or translation.source)[:MAX_CHARACTERS]
        if self.frequencies[0].is_in_capitals(start):
            return [CAPITALS]
        if self._is_target_language(start):
            return [TARGET_LANGUAGE]
        if words and not n_known:
            return [ALL_UNKNOWN]
        if len(words) >= MIN_WORDS and n_known < len(words) / 2:
            return [MOSTLY_UNKNOWN]
        if n_known < len(words) and self._lacks_unknown_word(translation):
            return [WORD_UNKNOWN]
        return []

    def _lacks_unknown_word(self, translation: Translation) -> bool:
        replaced = {replacement.src_position for replacement in translation.replaced}
        return any(
            has_letters(token)
            and token not in self._vocabularies[0]
            and position not in replaced
            and self._tokenizers[0].join([token]).lower() not in translation.text.lower()
            for position, token in enumerate(self._tokens_read(translation))
        )

    def _tokens_read(self, translation: Translation) -> Sequence[str]:
        read = translation.model_input
        return translation.src_tokens if read is None else self._tokenizers[0].split(read)

    def _lacks_sentences(self, translation: Translation) -> bool:
        expected = self._length_ratio * len(translation.src_tokens)
        if len(translation.tokens) < MIN_LENGTH * expected:
            return n_sentences(translation.source, ordinals=False) > 1
        ordinals = has_ordinals(self._tokenizers[0].language)
        n = n_sentences(translation.source, ordinals=ordinals)
        return self._marks_ends and most_sentences(translation.text) < n > 1

    def _is_target_language(self, text: str) -> bool:
        """Never True with a shared vocabulary, whose frequencies are those of both languages."""
        words = [word for word in text.split() if has_letters(word)]
        if len(words) < MIN_WORDS:
            return False
        as_source, as_target = (each.log_probs(words) for each in self.frequencies)
        gains = [target - source for source, target in zip(as_source, as_target, strict=True)]
        if sum(gains) <= MIN_MARGIN * len(words):
            return False
        n_target = sum(
            gain > 0 and all(self.frequencies[1].known(word))
            for word, gain in zip(words, gains, strict=True)
        )
        return n_target >= MIN_TARGET * len(words)


def describe(warning: str, numbers: Sequence[int], unit: str) -> str:
    """One line: the numbers of the sentences, and the warning. unit: "line" or "sentence"."""
    numbers = [*dict.fromkeys(numbers)]  # a line of a document may have several texts
    shown = ", ".join(map(str, numbers[:MAX_NUMBERS]))
    more = f" and {len(numbers) - MAX_NUMBERS:,} more" if len(numbers) > MAX_NUMBERS else ""
    text = DESCRIPTIONS.get(warning, warning)
    return f"{unit}{'s' if len(numbers) > 1 else ''} {shown}{more}: {text}"


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
