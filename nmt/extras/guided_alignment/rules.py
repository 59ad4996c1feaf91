"""What training.alignment_loss needs."""

from collections.abc import Iterator

from nmt.config.problems import Problem
from nmt.config.schema import Config
from nmt.config.section import key_of


def rules(config: Config) -> Iterator[Problem]:
    """A problem if it is missing."""
    if key_of(config.training, "alignment_loss", float) and not config.model.lexical_bias:
        yield Problem(
            ("training.alignment_loss", "model.lexical_bias"),
            "guided alignment needs the lexicon of the lexical bias; set model.lexical_bias, for "
            "example to 20",
        )
