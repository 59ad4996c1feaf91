"""Replaces <unk> in the output by the source word that it attends to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nmt.text.tokenizers import Tokenizer, normalize
from nmt.text.vocabulary import SPECIALS, UNK

UNKNOWN = SPECIALS[UNK]


@dataclass(frozen=True)
class Replacement:
    """The replacement of a token of the output: of an unknown word, or for a glossary.

    Attributes:
        position: of the unknown token in the output. src_position: of the most-attended source
            token; None without attention.
        token: the replacement; "" without attention.
        origin: where the replacement comes from.
    """

    position: int
    src_position: int | None
    token: str
    origin: Literal["copied", "left out", "glossary"]


def replace_unknown(
    tokens: Sequence[str], src_surfaces: Sequence[str], attention: NDArray[np.float32]
) -> tuple[Replacement, ...]:
    """A replacement for each unknown token: a copy of the source token with the largest weight.

    Args:
        tokens: T of them. src_surfaces: the S tokens of the source, as written in the text.
        attention: at least [T, S]; further rows and columns belong to <eos>.
    """
    replaced = []
    for position, (token, weights) in enumerate(
        zip(tokens, attention[:, : len(src_surfaces)], strict=False)
    ):
        if token != UNKNOWN:
            continue
        if not weights.any():
            replaced.append(Replacement(position, None, "", "left out"))
            continue
        peak = int(weights.argmax())
        replaced.append(Replacement(position, peak, src_surfaces[peak], "copied"))
    return tuple(replaced)


def with_replacements(tokens: Sequence[str], replaced: Sequence[Replacement]) -> list[str]:
    """The output's tokens with the replacements; "" in place of those that were left out."""
    replacements = {replacement.position: replacement.token for replacement in replaced}
    return [replacements.get(position, token) for position, token in enumerate(tokens)]


def surface_forms(text: str, tokens: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """The `tokens` of `text` in its upper and lower case, with the marks of the tokenizer.

    A token stays as it is if its letters cannot be found, because some characters change in number
    with their case.
    """
    letters, normalized = _letters(text, tokenizer)
    surfaces, position = [], 0
    for token in tokens:
        plain = tokenizer.join([token])
        start = normalized.find(plain, position)
        if start < 0 or not plain or not token.endswith(plain):
            surfaces.append(token)
            continue
        position = start + len(plain)
        written = "".join(letters[start:position])
        surfaces.append(
            token.removesuffix(plain) + (written if written.lower() == plain.lower() else plain)
        )
    return surfaces


def _letters(text: str, tokenizer: Tokenizer) -> tuple[list[str], str]:
    """The characters of the text at each character of its normalized form, and that form."""
    normalized = tokenizer.normalize(text)
    # A letter that becomes several stands at the first of them: "İ" is lower-cased to "i" and a dot
    # above.
    letters = [
        part for letter in normalize(text) for part in (letter, *[""] * (len(letter.lower()) - 1))
    ]
    if len(letters) == len(normalized):
        return letters, normalized
    plain = list(normalize(text))
    return (plain if len(plain) == len(normalized) else list(normalized)), normalized
