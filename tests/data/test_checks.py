"""Files that are not what the configuration says are refused, or give a warning; correct files do
neither.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt.config.schema import CleaningConfig, SourceConfig
from nmt.data.checks import MAX_SHIFT, check_header, check_languages, find_shift
from nmt.data.formats import open_pairs, open_source
from nmt.data.reading import PairsWriter, read_pairs
from nmt.data.workers import Workers, start_workers
from nmt.errors import DataError, NmtWarning
from nmt.extras.formats.readers import PairSource

Pairs = list[tuple[str, str]]
DIRECTIONS = [("en", "de"), ("de", "en")]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with start_workers(1) as pool:
        yield pool


@pytest.fixture(scope="module")
def sample(root: Path) -> Pairs:
    lines = (root / "data" / "sample" / "sample.tsv").read_text(encoding="utf-8").splitlines()
    return [(src, tgt) for src, tgt, *_ in (line.split("\t") for line in lines)]


def shifted(pairs: Pairs, shift: int) -> Pairs:
    """Each source with the target that was `shift` rows higher."""
    sources, targets = zip(*pairs, strict=True)
    return [
        *(
            zip(sources[shift:], targets, strict=False)
            if shift > 0
            else zip(sources, targets[-shift:], strict=False)
        )
    ]


@pytest.mark.parametrize("shift", [*range(-MAX_SHIFT, 0), *range(1, MAX_SHIFT + 1)])
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


@pytest.mark.parametrize(
    ("first_line", "is_header"),
    [
        ("en\tde", True),
        ("English\tGerman\tnote", True),
        ("Source\tTarget", True),
        ("German\tDeutsch", False),
        ("de\ten", False),
        ("Hi.\tHallo.", False),
        ("en", False),
        ("", False),
    ],
)
def test_names_of_columns_are_no_pair(first_line: str, is_header: bool) -> None:
    if is_header:
        with pytest.raises(
            DataError,
            match=r"^x\.tsv, line 1: names of columns, not a pair; set `columns` to \{en: \w+, de: \w+\}",
        ):
            check_header("x.tsv", first_line, (0, 1), ("en", "de"))
    else:
        check_header("x.tsv", first_line, (0, 1), ("en", "de"))


def test_languages_without_a_list_of_words_give_a_warning_only_if_the_text_is_clearly_another_one(
    sample: Pairs,
) -> None:
    with pytest.warns(
        NmtWarning, match=r"the ge sentences are perhaps in another language \(they look like de\)"
    ):
        check_languages("x.tsv", sample[:300], ("en", "ge"))
    check_languages("x.tsv", [("blorp snix " * 5, "glumf trask " * 5)] * 50, ("qx", "qy"))


def sources(shared_data: Path, root: Path, src: str, tgt: str) -> Iterator[PairSource]:
    table = SourceConfig(format="tsv", columns={"en": 1, "de": 2})
    for path in (root / "data" / "sample" / "sample.tsv", shared_data / "tatoeba" / "deu-eng.zip"):
        yield open_pairs(table, path, src, tgt)
    for name in ("train", "val", "test_2016_flickr"):
        files = {
            language: [shared_data / "multi30k" / f"{name}.{language}.gz"]
            for language in (src, tgt)
        }
        yield from open_source(SourceConfig(format="lines"), files, src, tgt)


@pytest.mark.slow
@pytest.mark.parametrize("languages", DIRECTIONS)
def test_real_data_raises_no_false_alarm_and_its_shifted_copy_is_refused(
    shared_data: Path, root: Path, tmp_path: Path, workers: Workers, languages: tuple[str, str]
) -> None:
    for source in sources(shared_data, root, *languages):
        with warnings.catch_warnings():
            warnings.simplefilter("error", NmtWarning)
            with PairsWriter(tmp_path / "pairs") as output:
                read_pairs([source], CleaningConfig(), workers, output, bool, languages=languages)
        lines = (tmp_path / "pairs").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        assert len(lines) == output.count
        srcs, tgts = zip(*(line.split("\t") for line in lines), strict=True)
        copy = tmp_path / "shifted.tsv"
        copy.write_text(
            "".join(f"{src}\t{tgt}\n" for src, tgt in zip(srcs[1:], tgts, strict=False)),
            encoding="utf-8",
        )
        config = SourceConfig(format="tsv", columns={languages[0]: 1, languages[1]: 2})
        shifted, message = (
            open_pairs(config, copy, *languages),
            r"shifted: most sources belong to the target line below \(lines 1 to ",
        )
        with PairsWriter(tmp_path / "pairs") as output, pytest.raises(DataError, match=message):
            read_pairs([shifted], None, workers, output, bool, languages=languages)
