"""A format and a tokenizer outside of nmt. The processes that read text do without torch, so these
stand in a file that does not import it.
"""

from collections.abc import Sequence
from pathlib import Path

from nmt.config.schema import SourceConfig, TokenizerConfig
from nmt.data.formats import Files, Languages, LinesSource, PairSource
from nmt.text.tokenizers import Tokenizer


class BlankTokenizer(Tokenizer):
    mark, look_alike = "\0", " "

    def __init__(self, config: TokenizerConfig, language: str, model: Path) -> None:
        super().__init__(config, "spaces")

    def split_all(self, texts: Sequence[str]) -> list[list[str]]:
        return [self.normalize(text).split() for text in texts]

    def join(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)


class StanzaSource(LinesSource):
    """Line-aligned files whose lines are shouted, to see that this class reads them."""

    unit = "stanza"


def open_stanzas(config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    """Two files a pair, one for each language."""
    return [
        StanzaSource(src, tgt, languages, config.member)
        for src, tgt in zip(files[languages[0]], files[languages[1]], strict=True)
    ]
