"""A translated sentence, with all that is known of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.unknown_words import Replacement
from nmt.text.vocabulary import EOS, SPECIALS


@dataclass(frozen=True)
class Translation:
    """A translated sentence; all but `source` is empty where the source was.

    Attributes:
        source, text: raw.
        src_tokens: S - 1 tokens of the source; the model reads <eos> after them.
        tokens: the tokens of the output, before unknown words were replaced.
        score: what it was ranked by. log_prob: of the tokens and <eos>, in nats.
        token_log_probs: a number for each row of `attention`; `log_prob` is their sum.
        attention: [T, S], a row for each token (and one for <eos> if `complete`), the last column belonging to <eos>.
        complete: False if it was cut at the maximum length.
        src_cut: whether the source was longer than decoding.max_source_tokens: what stands beyond was not read.
        replaced: what is written in place of unknown words.
    """

    source: str
    text: str = ""
    src_tokens: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    score: float = 0.0
    log_prob: float = 0.0
    token_log_probs: tuple[float, ...] = ()
    attention: NDArray[np.float32] | None = None
    complete: bool = True
    src_cut: bool = False
    replaced: tuple[Replacement, ...] = ()

    @property
    def attended(self) -> tuple[list[str], list[str]]:
        """The tokens that the columns and the rows of `attention` belong to."""
        eos = SPECIALS[EOS]
        return [*self.src_tokens, eos], [*self.tokens, *([eos] if self.complete else [])]
