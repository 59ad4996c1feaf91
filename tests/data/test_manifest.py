"""nmt.data.manifest: manifests that cannot be used."""

import json
from pathlib import Path

import pytest

from nmt.data.manifest import FORMAT, load_manifest
from nmt.errors import DataError


def with_files(files: object) -> str:
    """A manifest that lists these files."""
    sides = {
        "vocabulary": {side: {"size": 9} for side in ("src", "tgt")},
        "tokenizers": {"src": "x", "tgt": "x"},
    }
    rest = {"inputs": [], "config": {}, "content": "", "splits": {}, **sides}
    return json.dumps({"format": FORMAT, "format_version": 1, "files": files, **rest})


def test_a_missing_manifest_names_the_command_that_writes_it(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(
            DataError, match=r"no prepared data here; run `nmt prepare -c \.\.\.` first"
        ):
            load_manifest(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": ', "damaged .*--overwrite"),
        ("[]", r"damaged \(no JSON object\)"),
        ('{"format": "of another tool"}', "not written by `nmt prepare`"),
        (json.dumps({"format": FORMAT, "format_version": 99}), "format 99, but this nmt reads 1"),
        (
            with_files(None),
            r"damaged \(files: Input should be a valid dictionary\); run `nmt prepare -c \.\.\. --overwrite`",
        ),
        (
            with_files({"train.src.npy": "many"}),
            r"damaged \(files\.train\.src\.npy: Input should be a valid integer\)",
        ),
        (with_files({"../x": 3}), r"damaged \('\.\./x' is no file of prepared data\)"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_manifest(tmp_path)
