"""Translated files, which wait for some minutes until someone fetches them."""

import asyncio
import secrets
from pathlib import PureWindowsPath

SECONDS = 600.0  # until a file is deleted
MAX_BYTES = 1 << 27  # of all files; the oldest ones make room


class Downloads:
    """Files in memory, under keys that nobody can guess."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[str, bytes]] = {}  # key -> name, content

    def add(self, name: str, content: bytes) -> str:
        """Keep a file. Returns: its key."""
        key = secrets.token_urlsafe(24)
        self.files[key] = name, content
        while sum(len(each) for _, each in self.files.values()) > max(MAX_BYTES, len(content)):
            del self.files[next(iter(self.files))]
        asyncio.get_running_loop().call_later(SECONDS, self.files.pop, key, None)
        return key


def translated_name(name: str, language: str) -> str:
    """Of a translated file: README.de.md. `name` may be a path of any system."""
    path = PureWindowsPath(name)
    return f"{path.stem}.{language}{path.suffix}"
