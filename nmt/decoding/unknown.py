"""Unknown words in the output, replaced by the source word the decoder was looking at (Luong et al. 2015, "rare word problem")."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def replace_unknown(tokens: Sequence[str], unknown: str, src_tokens: Sequence[str], attention: NDArray[np.float32]) -> list[str]:
    """Each `unknown` among `tokens` becomes the source token with the largest weight.

    Args:
        tokens: T of them. src_tokens: S of them.
        attention: at least [T, S]; rows and columns past the tokens belong to <eos>.
    """
    if not src_tokens:
        return list(tokens)
    peaks = attention[:, : len(src_tokens)].argmax(axis=1)
    return [src_tokens[peaks[i]] if token == unknown else token for i, token in enumerate(tokens)]
