"""README and the pages of docs/, taken apart: code blocks, command lines, links and anchors."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = ("", "bash", "console")


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    page: Path
    language: str
    text: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    return [
        Block(page, *match.groups()) for match in FENCE.finditer(page.read_text(encoding="utf-8"))
    ]


def prose_of(page: Path) -> str:
    """The text without code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def command_lines(block: Block) -> Iterator[list[str]]:
    """The words of each command in a shell block, without `> FILE`; in a console block, of the
    lines that begin with a prompt.
    """
    lines = re.sub(r"\\\n", " ", block.text).splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    for line in lines:
        if words := shlex.split(line, comments=True):
            yield words[: words.index(">")] if ">" in words else words


ALL_BLOCKS = [block for page in PAGES for block in blocks_of(page)]
COMMANDS = [
    (name_of(block.page), words)
    for block in ALL_BLOCKS
    if block.language in SHELL
    for words in command_lines(block)
]


def anchors_of(text: str) -> set[str]:
    """The anchors of the headings in Markdown `text`, as MkDocs and GitHub name them, and those
    written as { #name }.
    """
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    slugs = {
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())
        for heading in headings
    }
    return slugs | set(re.findall(r"\{ #([\w.-]+) \}", text))
