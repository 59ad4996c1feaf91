"""`nmt prepare` refuses a source whose two languages are swapped, and no other."""

from pathlib import Path
from typing import Any

import pytest

from nmt.commands import prepare
from nmt.config.load import config_from_dict
from nmt.config.schema import Config
from nmt.data import reading
from nmt.errors import DataError

Rows = list[list[str]]


@pytest.fixture(scope="module")
def rows(root: Path) -> Rows:
    lines = (root / "data" / "sample" / "sample.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[:2] for line in lines[:400]]


def swapped(rows: Rows) -> Rows:
    return [[second, first] for first, second in rows]


def configure(folder: Path, direction: str, **sources: Rows) -> Config:
    """A configuration with a table for each source, the English sentences first."""
    data: dict[str, Any] = {
        "direction": direction,
        "prepared": str(folder / "prepared"),
        "workers": 1,
    }
    for role, rows in sources.items():
        path = folder / f"{role}.tsv"
        path.write_text("".join(f"{first}\t{second}\n" for first, second in rows), encoding="utf-8")
        data[role] = {"format": "tsv", "path": str(path), "columns": {"en": 1, "de": 2}}
    return config_from_dict(
        {
            "name": "x",
            "data": {**data, "split": {"dev": 20, "test": 20}},
            "tokenizer": {"kind": "characters"},
        }
    )


@pytest.mark.parametrize("direction", ["en-de", "de-en"])
def test_a_swapped_file_is_refused(tmp_path: Path, rows: Rows, direction: str) -> None:
    src, tgt = direction.split("-")
    message = (
        f"{tmp_path / 'source.tsv'}: the languages are swapped: the {src} sentences are {tgt}, "
        f"and the {tgt} sentences are {src} "
        "(lines 1 to 400); swap `columns` or `files` of this source in the configuration, or "
        "correct the file"
    )
    with pytest.raises(DataError) as error:
        prepare.run(configure(tmp_path, direction, source=swapped(rows)), progress=False)
    assert str(error.value) == message
    assert not (tmp_path / "prepared").exists()
    assert not prepare.run(configure(tmp_path, direction, source=rows), progress=False)[
        "already_prepared"
    ]


def test_one_swapped_source_of_several_is_refused(tmp_path: Path, rows: Rows) -> None:
    config = configure(tmp_path, "en-de", source=rows, dev=rows[:30], test=swapped(rows[30:60]))
    with pytest.raises(DataError, match=r"test\.tsv: the languages are swapped"):
        prepare.run(config, progress=False)


def test_a_swapped_part_of_a_file_is_named(
    tmp_path: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROWS", 100)
    config = configure(
        tmp_path,
        "en-de",
        source=[*rows[:100], *swapped(rows[100:300]), *rows[300:350], *swapped(rows[350:400])],
    )
    with pytest.raises(DataError, match=r"\(lines 101 to 300\)"):
        prepare.run(config, progress=False)


def test_too_few_words_are_no_evidence(tmp_path: Path, rows: Rows) -> None:
    names = [["Anna Schmidt", "Anna Schmidt"], ["Berlin", "Berlin"], ["1984", "1984"]]
    prepare.run(
        configure(tmp_path, "en-de", source=rows, dev=names, test=swapped(rows[:1])), progress=False
    )
