"""A tokenizer outside of nmt. The processes that read text do without torch, so it stands in a file
that does not import it.
"""

from collections.abc import Sequence
from pathlib import Path

from nmt.config.schema import TokenizerConfig
from nmt.text.tokenizers import Tokenizer


class BlankTokenizer(Tokenizer):
    mark, look_alike = "\0", " "

    def __init__(self, config: TokenizerConfig, language: str, model: Path) -> None:
        super().__init__(config, "spaces")

    def split_all(self, texts: Sequence[str]) -> list[list[str]]:
        return [self.normalize(text).split() for text in texts]

    def join(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)
