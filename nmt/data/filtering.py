"""Filtering: which sentence pairs are dropped, and why. Every drop is counted under its reason."""

from nmt.config.schema import CleaningConfig

# In the order of the report. Reading finds the first three, the last two need all pairs.
UNDECODABLE = "undecodable"
TOO_FEW_COLUMNS = "too few columns"
BAD_RECORD = "bad record"
EMPTY_SOURCE = "empty source"
EMPTY_TARGET = "empty target"
TOO_LONG = "too long"
LENGTH_RATIO = "length ratio"
DUPLICATE = "exact duplicate"
BEYOND_MAX_PAIRS = "beyond max_pairs"
DROP_REASONS = (
    UNDECODABLE,
    TOO_FEW_COLUMNS,
    BAD_RECORD,
    EMPTY_SOURCE,
    EMPTY_TARGET,
    TOO_LONG,
    LENGTH_RATIO,
    DUPLICATE,
    BEYOND_MAX_PAIRS,
)

# Added to both lengths, so that short pairs may differ more: "Hi." can be "Guten Tag, die
# Herrschaften."
_RATIO_SLACK = 10


def drop_reason(src: str, tgt: str, config: CleaningConfig) -> str | None:
    """Why to drop a pair of normalized sentences, or None to keep it. Lengths are in characters."""
    if not src:
        return EMPTY_SOURCE
    if not tgt:
        return EMPTY_TARGET
    longer, shorter = max(len(src), len(tgt)), min(len(src), len(tgt))
    if longer > config.max_characters:
        return TOO_LONG
    if (longer + _RATIO_SLACK) / (shorter + _RATIO_SLACK) > config.max_length_ratio:
        return LENGTH_RATIO
    return None
