"""A prepared folder as a source: its original training pairs, as text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nmt.config.schema import SourceConfig
from nmt.data.corpus import Corpus, read_sentences, restore_pairs
from nmt.data.formats import Files, Languages, PairSource, RawRow
from nmt.data.manifest import MANIFEST, load_manifest, original_ranges, prepared_config
from nmt.errors import DataError
from nmt.lines import ignore_progress
from nmt.run.folder import load_vocabularies
from nmt.text.tokenizers import SIDES, load_tokenizer
from nmt.text.vocabulary import SPECIALS, UNK


def open_prepared(_config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    """Folders, by their manifests. Raises: DataError if one is no prepared folder of both
    languages.
    """
    sources = list[PairSource]()
    for path in files[""]:
        folder = path.parent
        if (folder / "config.yaml").exists():
            raise DataError(f"{folder}: is a run; give the folder that its data.prepared names")
        config = prepared_config(folder, load_manifest(folder))
        if {*languages} != {config.data.src_language, config.data.tgt_language}:
            raise DataError(
                f"{folder}: translates {config.data.direction}, not between {languages[0]} and "
                f"{languages[1]}; give another folder"
            )
        case = "lower-cased " if config.tokenizer.lowercase else ""
        expected = f"{case}training pairs of a prepared folder, without those with <unk>"
        sources.append(PreparedSource(folder, config.data.src_language != languages[0], expected))
    return sources


@dataclass(frozen=True)
class PreparedSource(PairSource):
    """The original training pairs of a folder. is_opposite: whether its source is the target
    here.
    """

    is_opposite: bool
    expected: str = ""

    unit = "pair"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        manifest = load_manifest(self.path)
        config = prepared_config(self.path, manifest)
        corpus = Corpus.load(self.path, "train").selection(original_ranges(self.path, manifest))
        src, tgt = (
            load_tokenizer(config.tokenizer, language, side, self.path)
            for side, language in zip(SIDES, config.data.direction.split("-"), strict=True)
        )
        for pair in restore_pairs(corpus, (src, tgt), load_vocabularies(self.path)):
            if SPECIALS[UNK] not in "\t".join(pair):
                yield tuple(text.encode() for text in self._turned(pair))
        advance((self.path / MANIFEST).stat().st_size)

    def held_out(self) -> Iterator[tuple[str, str]]:
        for split in ("dev", "test"):
            sides = (read_sentences(self.path, split, side) for side in self._turned(SIDES))
            yield from zip(*sides, strict=True)

    def _turned(self, pair: tuple[str, str]) -> tuple[str, str]:
        return pair[::-1] if self.is_opposite else pair
