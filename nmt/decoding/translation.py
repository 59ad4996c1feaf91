"""A translation, with all that is known about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config.parts import VIEWS
from nmt.decoding.unknown_words import Replacement
from nmt.text.tokenizers import normalize
from nmt.text.vocabulary import EOS, SPECIALS

NO_ATTENTION = np.zeros((0, 1), np.float32)


@dataclass(frozen=True)
class Translation:
    """The translation of a sentence; everything but `source` is empty if the source is.

    Attributes:
        source, text: raw.
        src_tokens: S - 1 tokens of the source; the model reads <eos> after them.
        tokens: tokens of the output, before unknown words are replaced.
        score: ranks the translations of a sentence. log_prob: of the tokens and <eos>, in nats.
        token_log_probs: one for each row of `attention`; `log_prob` is their sum.
        attention: [T, S], a row for each token (and one for <eos> if `complete`); the last column
            belongs to <eos>.
        complete: False if the output was truncated at the maximum length.
        src_cut: whether the source was truncated at decoding.max_source_tokens.
        replaced: the replacements of unknown words.
        read: what the model read, if it is not the source.
        warnings: what was found to be wrong on the way to it.
        facts: further ones, for JSON.
        is_known: whether it was known without search; it needs no warnings.
        sentences: of a text of several sentences, their translations.
    """

    source: str
    text: str = ""
    src_tokens: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    score: float = 0.0
    log_prob: float = 0.0
    token_log_probs: tuple[float, ...] = ()
    attention: NDArray[np.float32] = field(default_factory=NO_ATTENTION.copy)
    complete: bool = True
    src_cut: bool = False
    replaced: tuple[Replacement, ...] = ()
    read: str | None = None
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_known: bool = False
    sentences: tuple["Translation", ...] = ()

    @property
    def has_attention(self) -> bool:
        """False for an empty source, and for a model without attention, whose weights are all 0."""
        return bool(self.attention.any())

    @property
    def attention_labels(self) -> tuple[list[str], list[str]]:
        """The tokens of the columns and of the rows of `attention`, <eos> included."""
        eos = SPECIALS[EOS]
        return [*self.src_tokens, eos], [*self.tokens, *([eos] if self.complete else [])]

    def _repr_html_(self) -> str | None:
        """In a notebook; None shows it as text."""
        view = VIEWS.get("notebook")
        return None if view is None else view.load()(self)


def copy_of(text: str, tokens: Sequence[str]) -> Translation:
    """The text as its own translation, each token aligned with itself."""
    size = len(tokens) + 1
    return Translation(
        source=text,
        text=text if text.isprintable() else normalize(text),
        src_tokens=tuple(tokens),
        tokens=tuple(tokens),
        token_log_probs=(0.0,) * size,
        attention=np.eye(size, dtype=np.float32),
    )
