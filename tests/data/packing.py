"""Files, plain and compressed in each way that nmt reads."""

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import zstandard

Packer = Callable[[Path, bytes], Path]


def plain(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def gzipped(path: Path, content: bytes) -> Path:
    return plain(path.with_name(f"{path.name}.gz"), gzip.compress(content))


def bzipped(path: Path, content: bytes) -> Path:
    return plain(path.with_name(f"{path.name}.bz2"), bz2.compress(content))


def xzipped(path: Path, content: bytes) -> Path:
    return plain(path.with_name(f"{path.name}.xz"), lzma.compress(content, check=lzma.CHECK_SHA256))


def zstandard_packed(path: Path, content: bytes) -> Path:
    return plain(
        path.with_name(f"{path.name}.zst"),
        zstandard.ZstdCompressor(write_checksum=True).compress(content),
    )


def zipped(path: Path, content: bytes) -> Path:
    return archive(path.with_suffix(".zip"), {"_about.txt": b"about", path.name: content})


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


PACKERS: list[Packer] = [gzipped, bzipped, xzipped, zstandard_packed, zipped]
