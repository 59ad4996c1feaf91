"""Unknown words in the output, replaced by the source word the decoder was looking at (Luong et al. 2015, "rare word problem")."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def replace_unknown(tokens: Sequence[str], unknown: str, src_tokens: Sequence[str], attention: NDArray[np.float32]) -> list[str]:
    """Each `unknown` among `tokens` becomes the source token with the largest weight; it is left out if no weight is on any.

    Args:
        tokens: T of them. src_tokens: S of them.
        attention: at least [T, S]; rows and columns past the tokens belong to <eos>.
    """
    replaced = []
    for token, weights in zip(tokens, attention[:, : len(src_tokens)], strict=False):
        if token != unknown:
            replaced.append(token)
        elif weights.any():
            replaced.append(src_tokens[int(weights.argmax())])
    return replaced
