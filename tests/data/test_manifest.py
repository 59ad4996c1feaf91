"""The manifest says what the training pairs are, also that of older versions."""

from pathlib import Path
from typing import Any

import pytest

from nmt.data.manifest import load_manifest, original_ranges, training_parts
from nmt.errors import DataError
from nmt.files import read_json, write_json

RUN = {"run": "runs/forward"}


def part(origin: str, pairs: int, repeat: int = 1, runs: Any = ()) -> dict[str, Any]:
    return {"origin": origin, "pairs": pairs, "repeat": repeat, "runs": [*runs]}


ORIGINAL, FORWARD = part("original", 10, 2), part("forward", 7, 3, [RUN])


@pytest.mark.parametrize(
    ("n_pairs", "augmentation", "ranges"),
    [
        (10, None, [(0, 10)]),
        (41, {"parts": [ORIGINAL, FORWARD]}, [(0, 10)]),
        (31, {"parts": [FORWARD, part("original", 10)]}, [(21, 31)]),
        (20, {"parts": [part("original", 10), part("original", 10)]}, [(0, 10), (10, 20)]),
        (50, {"parts": [ORIGINAL, FORWARD], "swapped_pairs": 9}, [(0, 10)]),
        (7, {"parts": [part("original", 10, 0), part("forward", 7)]}, None),
        (17, {"parts": [part("original", 10, 1, [RUN]), part("forward", 7)]}, None),
    ],
)
def test_original_pairs_are_found(
    n_pairs: int, augmentation: Any, ranges: list[tuple[int, int]] | None
) -> None:
    manifest = {"splits": {"train": {"pairs": n_pairs}}}
    manifest |= {} if augmentation is None else {"augmentation": augmentation}
    parts = training_parts(manifest)
    assert sum(part["pairs"] * part["repeat"] for part in parts) == n_pairs
    if ranges is not None:
        assert original_ranges(Path("data"), manifest) == ranges
        return
    with pytest.raises(DataError, match="data: has no pairs that are recorded as original"):
        original_ranges(Path("data"), manifest)


def test_parts_that_do_not_fit_are_damage(folder: Path, tmp_path: Path) -> None:
    manifest = read_json(folder / "prepared" / "manifest.json")
    manifest["augmentation"] = {"parts": [part("original", 3)]}
    write_json(tmp_path / "manifest.json", manifest)
    with pytest.raises(DataError, match=r"damaged \(its parts of the training data have 3 pairs"):
        load_manifest(tmp_path)
