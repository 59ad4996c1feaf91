"""The rules for decoding.shortlist."""

from collections.abc import Iterator

from nmt.config.parts import OUTPUTS
from nmt.config.problems import Problem
from nmt.config.schema import Config
from nmt.config.section import key_of


def rules(config: Config) -> Iterator[Problem]:
    """A problem for each rule that is broken."""
    if not key_of(config.decoding, "shortlist", int):
        return
    if OUTPUTS[config.model.output].trait("partial"):
        text = "adaptive already computes only the words that it needs; set shortlist to 0"
        yield Problem(("decoding.shortlist", "model.output"), text)
    if (neighbors := getattr(config.decoding, "neighbors", None)) and neighbors.pairs:
        text = "neighbors may need any word; set one of them to 0"
        yield Problem(("decoding.shortlist", "decoding.neighbors.pairs"), text)
