"""A tokenizer and a format of documents outside of nmt. The processes that read text do without
torch, so they stand in a file that does not import it.
"""

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from nmt.config.schema import TokenizerConfig
from nmt.data.pipeline import Job
from nmt.data.reading import Source
from nmt.data.splitting import Mask
from nmt.extras.documents.document import Segment
from nmt.text.tokenizers import Tokenizer
from nmt.texts.marked import Marked


class BlankTokenizer(Tokenizer):
    mark, look_alike = "\0", " "

    def __init__(self, config: TokenizerConfig, language: str, model: Path) -> None:
        super().__init__(config, "spaces")

    def split_all(self, texts: Sequence[str]) -> list[list[str]]:
        return [self.normalize(text).split() for text in texts]

    def join(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)


def find(text: str) -> Iterator[Segment]:
    """What stands after "note:"."""
    for found in re.finditer("(?<=note: ).+", text):
        yield Segment(*found.span(), Marked(found[0]), attrgetter("written"))


def says_yes(src: str, tgt: str) -> int:
    return int("Ja, " in tgt)


def drop_yes(
    job: Job, sources: Sequence[Source], held_out: Sequence[Source]
) -> tuple[Mask, dict[str, int]]:
    is_dropped = sources[0].pairs.origins("yes")[:, 1] == 1
    return is_dropped, {"pairs": int(is_dropped.sum())}


def yes_rows(figures: dict[str, int]) -> Iterator[tuple[str, str]]:
    yield "with a yes", f"{figures['pairs']}"
