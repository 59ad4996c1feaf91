"""Unknown words in the output, replaced by what the source word stands for that the decoder was looking at (Luong 2015b)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.lexicon import Lexicon
from nmt.text.vocabulary import SPECIALS, UNK

UNKNOWN = SPECIALS[UNK]


@dataclass(frozen=True)
class UnknownWords:
    """What is done about them: whether they are replaced, and where their translations are looked up before they are copied."""

    replace: bool = True
    lexicon: Lexicon | None = None


@dataclass(frozen=True)
class Replacement:
    """An unknown word of the output, and what took its place.

    Attributes:
        position: among the output's tokens. src_position: of the token looked at, among the source's; None if none was.
        token: what is written instead; "" if nothing was looked at.
        origin: copied from the source, taken from the lexicon, or left out.
    """

    position: int
    src_position: int | None
    token: str
    origin: Literal["copied", "lexicon", "left out"]


def replace_unknown(
    tokens: Sequence[str],
    src_tokens: Sequence[str],
    written: Sequence[str],
    attention: NDArray[np.float32],
    lexicon: Lexicon | None = None,
) -> tuple[Replacement, ...]:
    """Each unknown word becomes the best translation of the source token with the largest weight, or that token as it is written.

    Where the lexicon knows no better than `<unk>` either, the word is a rare one, often a name.

    Args:
        tokens: T of them. src_tokens: S of them, as the model read them. written: the same S, as the text has them.
        attention: at least [T, S]; rows and columns past the tokens belong to <eos>.
    """
    replaced = []
    for position, (token, weights) in enumerate(zip(tokens, attention[:, : len(src_tokens)], strict=False)):
        if token != UNKNOWN:
            continue
        if not weights.any():
            replaced.append(Replacement(position, None, "", "left out"))
            continue
        peak = int(weights.argmax())
        entry = lexicon.best(src_tokens[peak]) if lexicon is not None else None
        if entry is not None and entry != UNKNOWN:
            replaced.append(Replacement(position, peak, entry, "lexicon"))
        else:
            replaced.append(Replacement(position, peak, written[peak], "copied"))
    return tuple(replaced)


def with_replacements(tokens: Sequence[str], replaced: Sequence[Replacement]) -> list[str]:
    """The output's tokens as they are written."""
    instead = {one.position: one.token for one in replaced}
    return [token for position, known in enumerate(tokens) if (token := instead.get(position, known))]
