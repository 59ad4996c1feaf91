"""nmt.data.checks: wrong files are refused, or give a warning; correct files do neither."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt.config.schema import CleaningConfig, SourceConfig
from nmt.data.checks import (
    MAX_SHIFT,
    check_order,
    check_subwords,
    find_shift,
)
from nmt.data.formats import PairSource, open_source
from nmt.data.reading import Pairs as PairsFile
from nmt.data.reading import read_pairs
from nmt.data.workers import start_workers
from nmt.errors import DataError, NmtWarning
from nmt.text.tokenizers import SIDES
from nmt.text.vocabulary import Vocabulary
from tests.toy import write_table

pytestmark = pytest.mark.filterwarnings("error::nmt.errors.NmtWarning")
Pairs = list[tuple[str, str]]


def shifted(pairs: Pairs, shift: int) -> Pairs:
    """Each source with the target that was `shift` rows higher."""
    sources, targets = zip(*pairs, strict=True)
    return [*zip(sources[shift:], targets, strict=False)]


@pytest.mark.parametrize("shift", range(1, MAX_SHIFT + 1))
@pytest.mark.parametrize("n_pairs", [60, 1000])
def test_a_shift_is_found_in_both_directions(sample: Pairs, shift: int, n_pairs: int) -> None:
    pairs = shifted(sample[:n_pairs], shift)
    assert find_shift(pairs) == shift
    assert find_shift([(tgt, src) for src, tgt in pairs]) == -shift


def test_no_shift_is_found_where_there_is_none(sample: Pairs) -> None:
    assert not any(find_shift(sample[start : start + 100]) for start in range(0, len(sample), 100))
    assert find_shift(sample[:20]) == 0, "too few rows"
    random = np.random.default_rng(1)
    targets = [tgt for _, tgt in sample]
    for _ in range(20):
        random.shuffle(targets)
        assert (
            find_shift([(src, tgt) for (src, _), tgt in zip(sample[:200], targets, strict=False)])
            == 0
        ), "no order at all"
    assert find_shift([("Yes.", "Ja.")] * 100) == 0, "all rows are the same"
    assert find_shift([("", "")] * 100) == 0


@pytest.mark.parametrize("languages", [("en", "de"), ("de", "en")])
def test_swapped_languages_are_refused(sample: Pairs, languages: tuple[str, str]) -> None:
    src, tgt = languages
    right = [pair if src == "en" else pair[::-1] for pair in sample[:300]]
    swapped = [(second, first) for first, second in right]
    check_order("x.tsv", "line", (1, 300), languages, right, right)
    with pytest.raises(DataError) as error:
        check_order("x.tsv", "line", (1, 300), languages, swapped, swapped)
    assert str(error.value) == (
        f"x.tsv: the languages are swapped: the {src} sentences are {tgt}, and the {tgt} sentences "
        f"are {src} (lines 1 to 300); swap `columns` or `files` of this source in the "
        "configuration, or correct the file"
    )
    names = [("Anna Schmidt", "Anna Schmidt"), ("Berlin", "Berlin"), ("1984", "1984")]
    check_order("x.tsv", "line", (1, 4), languages, [*names, swapped[0]], names)


def test_subwords_that_are_too_rare_give_a_warning() -> None:
    syllables = [a + b for a in "abcdefgh" for b in "abcdefgh"]
    frequent, rare = (Vocabulary(syllables, [0, *[count] * 64]) for count in (9, 2))
    characters = Vocabulary([*"abcdefgh"], [0, *[9] * 8])
    check_subwords({"src": frequent, "tgt": characters}, 8000)
    with pytest.warns(
        NmtWarning, match=r"tokenizer\.size: 8,000 is too .*64 of .* tgt .* about 20"
    ):
        check_subwords({"src": frequent, "tgt": rare}, 8000)
    # Nearly all pieces are characters, as in a short Chinese text: only the size tells.
    chinese = Vocabulary([*map(chr, range(0x4E00, 0x4E40))], [0, *[1] * 64])
    with pytest.warns(NmtWarning, match=r"64 of the 64 src .* about 90") as record:
        check_subwords(dict.fromkeys(SIDES, chinese), 8000)
    assert len(record) == 1
    check_subwords({"src": chinese, "tgt": chinese}, 90)


def sources(shared_data: Path, root: Path, languages: tuple[str, str]) -> Iterator[PairSource]:
    table = SourceConfig(format="tsv", columns={"en": 1, "de": 2})
    for path in (root / "data" / "sample" / "sample.tsv", shared_data / "tatoeba" / "deu-eng.zip"):
        yield from open_source(table, {"": [path]}, languages)
    for name in ("train", "val", "test_2016_flickr"):
        files = {each: [shared_data / "multi30k" / f"{name}.{each}.gz"] for each in languages}
        yield from open_source(SourceConfig(format="lines"), files, languages)


@pytest.mark.slow
def test_real_data_raises_no_false_alarm_and_its_shifted_copy_is_refused(
    shared_data: Path, root: Path, tmp_path: Path
) -> None:
    languages, copy = ("en", "de"), tmp_path / "shifted.tsv"
    config = SourceConfig(format="tsv", columns={"en": 1, "de": 2})
    message = r"shifted: most sources belong to the target line below \(lines 1 to "
    with start_workers(1) as workers:
        for number, source in enumerate(sources(shared_data, root, languages)):
            output = PairsFile(tmp_path / str(number))
            read_pairs([source], CleaningConfig(), workers, output, bool, languages=languages)
            pairs = [*output.stream()]
            assert len(pairs) == len(output)
            write_table(copy, shifted(pairs, 1))
            opened = open_source(config, {"": [copy]}, languages)
            with pytest.raises(DataError, match=message):
                read_pairs(opened, None, workers, output, bool, languages=languages)
