"""scripts/diversify.py: an error comes before hours of training."""

from pathlib import Path

import pytest

from scripts import diversify
from tests.conftest import ROOT

CONFIGS = [str(ROOT / f"configs/{name}.yaml") for name in ("multi30k", "multi30k-de-en")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*CONFIGS, "--more-teachers", "wide"], "wide: needs a name, then keys to change, for"),
        ([*CONFIGS, "--set", "model.dropuot=0.2"], "model.dropuot: unknown key"),
        ([CONFIGS[0], CONFIGS[0]], "the two configurations need opposite directions"),
    ],
)
def test_an_error_comes_before_the_first_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert diversify.main([*words, "-o", str(tmp_path / "runs")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
