"""The sample corpus is the one of which README and docs give scores."""

from pathlib import Path

from nmt.files import sha256_of

SAMPLE = Path(__file__).resolve().parent.parent / "data" / "sample" / "sample.tsv"


def test_it_has_not_changed() -> None:
    digest = "8840071b671fa96364bbce56b48691d0692be31d51d564119920c9e706e7a36c"
    assert sha256_of(SAMPLE) == digest
