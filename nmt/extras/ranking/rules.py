"""The rules for decoding.mbr and decoding.rerank."""

from collections.abc import Iterator

from nmt.config.problems import Problem
from nmt.config.schema import Config
from nmt.config.section import key_of
from nmt.extras.ranking.keys import MbrConfig, RerankConfig


def rules(config: Config) -> Iterator[Problem]:
    """A problem for each rule that is broken."""
    decoding = config.decoding
    mbr = key_of(decoding, "mbr", MbrConfig)
    for key, field in MbrConfig.model_fields.items():
        is_set = getattr(mbr, key) != field.default
        if is_set and decoding.method != "mbr":
            text = f"only mbr uses {key}, not {decoding.method}"
            yield Problem((f"decoding.mbr.{key}", "decoding.method"), text)
        elif is_set and key == "samples" and mbr.candidates == "beam":
            text = (
                "candidates beam are as many as decoding.beam; set that, or candidates to sampling"
            )
            yield Problem(("decoding.mbr.samples", "decoding.mbr.candidates"), text)
    if key_of(decoding, "rerank", RerankConfig).run is not None and decoding.search == "sampling":
        yield Problem(
            ("decoding.rerank.run", f"decoding.{decoding.search_key}"),
            "reranking is for the hypotheses of beam search, not for samples",
        )
