"""Tokens to ids and back, and how frequent tokens are. Ids 0 to 3 are padding, unknown token, start
and end of a sentence.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Self

from nmt.errors import DataError
from nmt.files import MAX_TEXT_BYTES, check_content
from nmt.lines import read_lines, write_lines
from nmt.text.tokenizers import Tokenizer, has_letters

COUNT = re.compile("[0-9]{1,18}")
PAD, UNK, SOS, EOS = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<sos>", "<eos>")
MIN_TITLE = 4  # words that all begin with a capital letter
MIN_MARGIN = 1.0  # nats per word by which a text must be more probable in another form
MIN_CAPITALS = 0.7  # of the letters of a text in capitals


class Vocabulary:
    """Tokens with their counts in the training data: special ones first, then most frequent first.

    Attributes:
        counts: how often each id is in the training data, in the order of the ids; of `<unk>`, the
            number of training tokens without an id of their own.
    """

    def __init__(self, tokens: Sequence[str], counts: Sequence[int]) -> None:
        """`tokens` excludes the special tokens; `counts[0]` is the count of `<unk>`, then one count
        follows for each token.

        Raises:
            ValueError: a token cannot be stored in the file.
        """
        self._tokens = (*SPECIALS, *tokens)
        self.counts = (0, counts[0], 0, 0, *counts[1:])
        self._ids = {token: index for index, token in enumerate(tokens, start=len(SPECIALS))}
        if any(not token or "\t" in token or "\n" in token or "\r" in token for token in tokens):
            raise ValueError("a token must not be empty, nor contain a tab or a line break")

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        min_frequency: int = 1,
        max_size: int | None = None,
    ) -> Self:
        """Keep the tokens with a count of at least `min_frequency`, at most `max_size` of them with
        the special tokens.

        Ties are broken alphabetically, so the order of `counts` does not matter. Tokens spelled
        like a special token are unknown.
        """
        ranked = sorted(
            (
                token
                for token, count in counts.items()
                if count >= min_frequency and token not in SPECIALS
            ),
            key=lambda token: (-counts[token], token),
        )
        kept = ranked if max_size is None else ranked[: max(0, max_size - len(SPECIALS))]
        kept_counts = [counts[token] for token in kept]
        return cls(kept, [sum(counts.values()) - sum(kept_counts), *kept_counts])

    def extended(self, counts: Mapping[str, int], min_frequency: int) -> Self:
        """This vocabulary with unknown tokens that have a count of at least `min_frequency` at its
        end, in the order of `build`. All ids and counts stay, that of `<unk>` too.

        Args:
            counts: of all tokens in other texts.
        """
        unknown = {token: count for token, count in counts.items() if token not in self}
        new = self.build(unknown, min_frequency)
        n_special = len(SPECIALS)
        return type(self)(
            [*self._tokens[n_special:], *new._tokens[n_special:]],
            [self.counts[UNK], *self.counts[n_special:], *new.counts[n_special:]],
        )

    def begins(self, other: "Vocabulary") -> bool:
        """Whether `other` has the tokens and counts of this one, and perhaps more at its end."""
        n = len(self)
        return (self._tokens, self.counts) == (other._tokens[:n], other.counts[:n])

    def __len__(self) -> int:
        return len(self._tokens)

    def __contains__(self, token: object) -> bool:
        """Whether `token` has an id; special tokens are not text, so they do not count."""
        return token in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self._tokens, self.counts) == (
            other._tokens,
            other.counts,
        )

    def __hash__(self) -> int:
        return hash(self._tokens)

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """UNK for unknown tokens. A text token spelled "<pad>" is unknown too, never a special
        id.
        """
        return [self._ids.get(token, UNK) for token in tokens]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Raises: IndexError if an id is not below `len(self)`."""
        return [self._tokens[index] for index in ids]

    def save(self, path: Path) -> None:
        """Write one line `token<TAB>count` for each id, in order."""
        write_lines(
            path,
            (f"{token}\t{count}" for token, count in zip(self._tokens, self.counts, strict=True)),
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises: DataError if the file is missing, or a line is damaged (the message names it)."""
        advice = "`nmt prepare` writes it, and each run has a copy"
        lines = read_lines(
            path, needs_final_line_feed=True, advice=advice, max_bytes=MAX_TEXT_BYTES
        )
        entries: dict[str, int] = {}
        for number, line in enumerate(lines, start=1):
            token, _, count = line.partition("\t")
            if not token or "\r" in token or not COUNT.fullmatch(count):
                raise DataError(
                    f"{path}, line {number}: expected a token, a tab and its count, found {line!r}"
                )
            if token in entries:
                raise DataError(f"{path}, line {number}: {token!r} occurs twice")
            entries[token] = int(count)
        if tuple(entries)[: len(SPECIALS)] != SPECIALS:
            raise DataError(f"{path}: does not begin with the tokens {', '.join(SPECIALS)}")
        check_content(path, advice)
        counts = [*entries.values()]
        return cls([*entries][len(SPECIALS) :], [counts[UNK], *counts[len(SPECIALS) :]])


class WordFrequencies:
    """Knows a language by the frequencies of its tokens.

    Args:
        vocabulary: with the counts of the training data.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary
        self._log_probs = unigram_log_probs(vocabulary.counts)

    def log_probs(self, texts: Sequence[str]) -> list[float]:
        """Of the tokens of each text, as if each were independent of the others."""
        return [
            sum(self._log_probs[index] for index in self._vocabulary.ids(tokens))
            for tokens in self._tokenizer.split_all(texts)
        ]

    def known(self, text: str) -> list[bool]:
        """Of each token with letters: whether it is in the vocabulary."""
        tokens = filter(has_letters, self._tokenizer.split(text))
        return [token in self._vocabulary for token in tokens]

    def is_in_capitals(self, text: str) -> bool:
        """Whether a text, or the start of each word, is in capital letters, unlike the training
        data. Never True for scripts without case, and for acronyms, which lower case makes no more
        probable.
        """
        starts = [next(filter(str.isalpha, word)) for word in text.split() if has_letters(word)]
        n_words, is_title = len(starts), all(map(str.isupper, starts))
        n_upper, n_lower = sum(map(str.isupper, text)), sum(map(str.islower, text))
        is_upper = n_upper >= max(2, MIN_CAPITALS * (n_upper + n_lower))
        if not is_upper and not (is_title and n_words >= MIN_TITLE):
            return False
        if n_words == 1:  # "STOP!", but neither "OK!" nor "NASA"
            given, lower, capitalized = (
                self.known(form) == [True] for form in (text, text.lower(), text.capitalize())
            )
            return (lower or capitalized) and not given
        as_lower, as_given = self.log_probs([text.lower(), text])
        return as_lower - as_given > MIN_MARGIN * n_words


def unigram_log_probs(counts: Sequence[int]) -> list[float]:
    """Of each id, from its count in the training data."""
    total = max(sum(counts), 1)
    log_probs = [log(max(count, 0.5) / total) for count in counts]
    log_probs[UNK] = min(log_probs)  # <unk> may be frequent, but each unknown word is rare
    return log_probs
