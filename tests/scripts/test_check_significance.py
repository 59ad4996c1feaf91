"""scripts/check_significance.py: a few comparisons of systems that do not differ."""

from pathlib import Path

import pytest

from scripts import check_significance
from tests import toy


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    references = [target for _, target in toy.sentence_pairs()]
    files = []
    for old, new in (("Hund", "Wolf"), ("König", "Kaiser"), ("", "")):
        text = "".join(f"{line.replace(old, new)}\n" for line in references)
        files.append(tmp_path / f"{new}.txt")
        files[-1].write_text(text, encoding="utf-8")
    one, other, reference = map(str, files)
    options = "--pairs", "2", "--sentences", "50"
    assert check_significance.main([one, other, "--references", reference, *options]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["randomization", "bootstrap"]
