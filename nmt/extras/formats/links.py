"""Pairs as tatoeba.org exports them: ids of sentences that translate each other, and sentences."""

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from nmt.config.schema import SourceConfig
from nmt.data.formats import Files, Languages, PairSource, RawRow
from nmt.errors import DataError
from nmt.lines import ignore_progress, read_raw_lines


@dataclass(frozen=True)
class LinksSource(PairSource):
    """Ids of sentences that translate each other, and the sentences (id, language, text). path: of
    the ids.

    Attributes:
        sentences: the files of the sentences of each column of ids. columns: of source and target.
    """

    sentences: tuple[Path, Path]
    columns: tuple[int, int]

    expected = "the ids of two sentences"

    @property
    def name(self) -> str:
        return f"{self.path} with {self.sentences[0]} and {self.sentences[1]}"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        links = [(*line.split(b"\t"), b"") for line in read_raw_lines(self.path, advance=advance)]
        texts = [
            _texts_by_id(path, {ids[column] for ids in links}, advance)
            for column, path in enumerate(self.sentences)
        ]
        for ids in links:
            src, tgt = (texts[column].get(ids[column], b"") for column in self.columns)
            yield src, tgt


def _texts_by_id(
    path: Path, wanted: Set[bytes], advance: Callable[[int], object]
) -> dict[bytes, bytes]:
    rows = (line.split(b"\t", 2) for line in read_raw_lines(path, advance=advance))
    return {row[0]: row[-1] for row in rows if row[0] in wanted}


def open_links(config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    """Pairs of ids, and the sentences with these ids, from three files."""
    links, *sentences = files[""]
    columns = config.columns or {}
    if len(sentences) != 2 or {columns[language] for language in languages} != {1, 2}:
        raise DataError(
            f"{links}: format links needs three files: the ids of column 1 and 2, the sentences of "
            "column 1, and those of column 2"
        )
    src, tgt = (int(columns[language]) - 1 for language in languages)
    return [LinksSource(links, (sentences[0], sentences[1]), (src, tgt))]
