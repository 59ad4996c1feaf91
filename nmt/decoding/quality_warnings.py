"""What may be wrong with a translation, told cheaply: from its tokens and the vocabularies, without asking the model again."""

from collections.abc import Mapping, Sequence
from math import log

from nmt.decoding.translation import Translation
from nmt.text.repetition import repeats
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import UNK, Vocabulary

SOURCE_CUT, OUTPUT_CUT, REPEATING = "source cut", "output cut", "output repeats"
TARGET_LANGUAGE, ALL_UNKNOWN, MOSTLY_UNKNOWN = "source in target language", "source unknown", "source mostly unknown"
UNKNOWN_GIVEN = "unknown words given"

DOUBTS: Mapping[str, str] = {
    SOURCE_CUT: "the source is longer than decoding.max_source_tokens, and was read no further",
    ALL_UNKNOWN: "this run knows no word of the source",
    MOSTLY_UNKNOWN: "this run knows few words of the source; is it in another language?",
    TARGET_LANGUAGE: "the source looks like the language that this run translates into",
    OUTPUT_CUT: "the output had not ended at the greatest length (decoding.max_length_ratio), and was cut",
    REPEATING: "the output repeats itself",
    UNKNOWN_GIVEN: "a word of the translation is not in the vocabulary; it was scored as any unknown word",
}

SAMPLE = 400  # characters of a source that its language is told by
LEAST_WORDS = 3  # fewer tell no language
MARGIN = 1.0  # nats a word by which it must be likelier in the other language
TIMES = 3  # in a row: what repeats


class Doubter:
    """Knows the languages of a run by the frequencies of their words."""

    def __init__(self, tokenizers: tuple[Tokenizer, Tokenizer], vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
        """Both are (source, target)."""
        self._tokenizers, self._vocabularies = tokenizers, vocabularies
        self._unigrams = [_Unigrams(vocabulary) for vocabulary in vocabularies]

    def doubts(self, translation: Translation) -> list[str]:
        """Names of `DOUBTS`."""
        found = [self._of_source(translation)] if translation.src_tokens else []
        found += [SOURCE_CUT] if translation.src_cut else []
        found += [] if translation.complete else [OUTPUT_CUT]
        found += [REPEATING] if repeats(translation.tokens, TIMES) and not repeats(translation.src_tokens, TIMES) else []
        return [doubt for doubt in found if doubt]

    def _of_source(self, translation: Translation) -> str:
        words = [token for token in translation.src_tokens if any(map(str.isalpha, token))]
        n_known = sum(word in self._vocabularies[0] for word in words)
        if self._is_target_language(translation.source[:SAMPLE]):
            return TARGET_LANGUAGE
        if words and not n_known:
            return ALL_UNKNOWN
        return MOSTLY_UNKNOWN if len(words) >= LEAST_WORDS and n_known < len(words) / 2 else ""

    def _is_target_language(self, text: str) -> bool:
        """Never where the languages share a vocabulary: then the frequencies are those of both."""
        n_words = len(text.split())
        if n_words < LEAST_WORDS:
            return False
        as_source, as_target = (
            unigrams.log_prob(tokenizer.split(text)) for unigrams, tokenizer in zip(self._unigrams, self._tokenizers, strict=True)
        )
        return as_target - as_source > MARGIN * n_words


class _Unigrams:
    """How likely tokens are one by one, by their counts in the training data."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        total = sum(vocabulary.counts)
        self._vocabulary = vocabulary
        self._log_probs = [log(max(count, 0.5) / max(total, 1)) for count in vocabulary.counts]
        self._log_probs[UNK] = min(self._log_probs)  # all that are unknown together may be frequent, but each is rare

    def log_prob(self, tokens: Sequence[str]) -> float:
        return sum(self._log_probs[known] for known in self._vocabulary.ids(tokens))


def describe(doubt: str, numbers: Sequence[int], unit: str) -> str:
    """One line: what is the matter with which lines. `unit` is what they are, in the singular."""
    shown = ", ".join(map(str, numbers[:10]))
    more = f" and {len(numbers) - 10:,} more" if len(numbers) > 10 else ""
    return f"{unit}{'s' if len(numbers) > 1 else ''} {shown}{more}: {DOUBTS[doubt]}"
