"""A translation, with all that is known about it; and how its unknown words are replaced by source
words that they attend to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nmt.config.parts import VIEWS
from nmt.text.tokenizers import Tokenizer, normalize
from nmt.text.vocabulary import EOS, SPECIALS, UNK

NO_ATTENTION = np.zeros((0, 1), np.float32)
UNKNOWN = SPECIALS[UNK]


@dataclass(frozen=True)
class Replacement:
    """The replacement of a token of the output: of an unknown word, or for a glossary.

    Attributes:
        position: of the replaced token in the output. src_position: of the most-attended source
            token; None without attention.
        token: the replacement; "" without attention.
        origin: where the replacement comes from.
    """

    position: int
    src_position: int | None
    token: str
    origin: Literal["copied", "left out", "glossary"]


@dataclass(frozen=True)
class Translation:
    """The translation of a sentence; everything but `source` is empty if the source is.

    Attributes:
        source, text: raw.
        src_tokens: S - 1 tokens of the source; the model reads <eos> after them.
        tokens: tokens of the output, before some are replaced.
        score: ranks the translations of a sentence. log_prob: of the tokens and <eos>, in nats.
        token_log_probs: one for each row of `attention`; `log_prob` is their sum.
        attention: [T, S], a row for each token (and one for <eos> if `complete`); the last column
            belongs to <eos>.
        complete: False if the output was truncated at the maximum length.
        src_cut: whether the source was truncated at decoding.max_source_tokens.
        replaced: the replacements of unknown words, and for a glossary.
        model_input: what the model read, if it is not the source.
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
    model_input: str | None = None
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
