"""README and the pages of docs/, taken apart: code blocks, command lines, links and anchors."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = ("", "bash", "console")


@dataclass(frozen=True)
class Block:
    page: str
    language: str
    text: str


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose_of(page: str) -> str:
    return FENCE.sub("", text_of(page))


def blocks_of(page: str, *languages: str) -> list[Block]:
    """The code blocks of a page; with `languages`, only those in these."""
    blocks = [Block(page, *match.groups()) for match in FENCE.finditer(text_of(page))]
    return [block for block in blocks if not languages or block.language in languages]


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
    (block.page, words)
    for block in ALL_BLOCKS
    if block.language in SHELL
    for words in command_lines(block)
]


def anchors_of(text: str) -> set[str]:
    """The anchors of the headings in Markdown `text`, as MkDocs and GitHub name them, and those
    written as { #name }.
    """
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    words = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    slugs = {re.sub(r"[-\s]+", "-", word) for word in words}
    return slugs | set(re.findall(r"\{ #([\w.-]+) \}", text))
