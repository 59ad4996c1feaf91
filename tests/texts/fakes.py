"""A translator of sentences that does what a test says."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from nmt.config.schema import DecodingConfig, TokenizerConfig
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import TextError
from nmt.text.tokenizers import Tokenizer, load_tokenizer
from nmt.text.vocabulary import Vocabulary
from tests.decoding.scripted import Scripted, V

# With their counts. Names and numbers of both languages are stand-ins.
WORDS = {"Tom": 50, "Boston": 40, "Mary": 30, "Ken": 20, "19": 20, "20": 10, "30": 9}
WORDS |= dict.fromkeys(["the", "dog", "sees", "a", "tree", "in", "and", "is", "here", "NASA"], 60)
WORDS |= {"The": 20, "In": 10, "Is": 9}


@cache
def tokenizer(language: str) -> Tokenizer:
    """Words of any language."""
    words = load_tokenizer(TokenizerConfig(kind="words"), "xx", "src", Path())
    words.language = language
    return words


KINDS: dict[str, Literal["new", "copied", "other"]] = dict.fromkeys(
    ["Kylie", "Minogue", "GIMP", "McCoy", "Skiers", "Yale", "Export"], "new"
)
KINDS |= {"Roosevelt": "copied", "%s": "copied"}


def kind_of(word: str) -> Literal["new", "copied", "other"]:
    return KINDS.get(word, "other")


class FakeTranslator(Translator):
    """Args: translate: from a sentence to the texts of its n best translations.

    Attributes:
        read: the sentences, in order.
    """

    def __init__(
        self, translate: Callable[[str], Sequence[str]], languages: Sequence[str] = ("en", "de")
    ) -> None:
        src, tgt = (tokenizer(language) for language in languages)
        vocabulary = Vocabulary([*WORDS], [0, *WORDS.values()])
        super().__init__(
            Scripted(lambda *_: {}, lambda *_: [], V),
            tokenizers=(src, tgt),
            vocabularies=(vocabulary, vocabulary),
            options=DecodingConfig(beam=5),
        )
        self.fake, self.read = translate, list[str]()

    def translate_n_best(
        self, texts: Sequence[str], n: int, prefixes: Sequence[str] | None = None
    ) -> list[list[Translation]]:
        self.read += texts
        if "fails" in texts:
            raise TextError(texts.index("fails"), "is too long")
        found = {
            text: [self._translation(text, each) for each in self.fake(text)][:n] for text in texts
        }
        return [found[text] for text in texts]  # equal texts share them

    def _translation(self, source: str, text: str) -> Translation:
        """Each token attends to an equal one, or to that of the same number; then to <eos>."""
        src_tokens, tokens = self.src_tokenizer.split(source), self.tgt_tokenizer.split(text)
        attention = np.zeros((len(tokens) + 1, len(src_tokens) + 1), np.float32)
        for row, token in enumerate([*tokens, ""]):
            place = src_tokens.index(token) if token in src_tokens else row
            attention[row, min(place, len(src_tokens))] = 1
        log_probs = tuple(-0.5 * (row + 1) for row in range(len(tokens) + 1))
        return Translation(
            source=source,
            text=text,
            src_tokens=tuple(src_tokens),
            tokens=tuple(tokens),
            score=-1.0,
            log_prob=sum(log_probs),
            token_log_probs=log_probs,
            attention=attention,
        )
