"""Tokens as a text has them: a tokenizer that lower-cases forgets how names are written."""

from collections.abc import Sequence

from nmt.text.normalization import normalize
from nmt.text.tokenizers import Tokenizer


def surfaces(text: str, tokens: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """The `tokens` of `text` with the letters that stand there, and the marks that the tokenizer gave them.

    A token whose letters cannot be found, since Unicode changes their number with their case, stays as it is.
    """
    letters, lowered = _letters(text, tokenizer)
    found, position = [], 0
    for token in tokens:
        plain = tokenizer.join([token])
        start = lowered.find(plain, position)
        if start < 0 or not plain or not token.endswith(plain):
            found.append(token)
            continue
        position = start + len(plain)
        written = "".join(letters[start:position])
        found.append(token.removesuffix(plain) + (written if written.lower() == plain.lower() else plain))
    return found


def _letters(text: str, tokenizer: Tokenizer) -> tuple[list[str], str]:
    """What stands at each character of the text as the tokenizer sees it, and that text."""
    normal = tokenizer.normalize(text)
    # A letter that becomes several is put at the first of them: "İ" is lower-cased to "i" and a dot above.
    letters = [part for letter in normalize(text) for part in (letter, *[""] * (len(letter.lower()) - 1))]
    if len(letters) == len(normal):
        return letters, normal
    plain = list(normalize(text))
    return (plain if len(plain) == len(normal) else list(normal)), normal
