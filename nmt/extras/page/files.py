"""Reads the files that a browser gets."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def read(name: str) -> str:
    """The text of a file."""
    return (FOLDER / name).read_text(encoding="utf-8")


def linked(html: str) -> list[str]:
    """The names of the styles and scripts that a page loads."""
    return re.findall(r'(?:href|src)="\./([a-z_]+\.(?:css|js))"', html)
