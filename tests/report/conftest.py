"""What the tests of pictures share."""

from typing import Any

import pytest
from matplotlib.figure import Figure


@pytest.fixture(scope="module", autouse=True)
def quick_pictures() -> None:
    """In place of that of all tests: pictures are drawn here."""


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    saved: list[Figure] = []
    savefig = Figure.savefig

    def record(self: Figure, *args: Any, **options: Any) -> None:
        saved.append(self)
        savefig(self, *args, **options)

    monkeypatch.setattr(Figure, "savefig", record)
    return saved
