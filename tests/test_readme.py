"""What README names exists: classes, files and folders."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLASSES = {name for path in (ROOT / "nmt").rglob("*.py") for name in re.findall(r"^class (\w+)", path.read_text("utf-8"), re.M)}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", README))))
def test_a_class_named_in_the_readme_exists(name: str) -> None:
    assert name in CLASSES


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([^)#:]+)\)|((?:configs|scripts|tests)/[\w/.-]+\.\w+)", README))))
def test_a_file_named_in_the_readme_exists(path: tuple[str, str]) -> None:
    assert (ROOT / (path[0] or path[1])).exists()
