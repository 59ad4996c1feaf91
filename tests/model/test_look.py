"""The hypotheses of a sentence look at one memory as if each had its own."""

import pytest
import torch

from tests.model.test_attention import CASES, KEYS, make, read


@pytest.mark.parametrize(KEYS, CASES)
def test_hypotheses_share_a_memory(kind: str, score: str, heads: int) -> None:
    """Two steps, so that what is known of the first has its effect on the second."""
    attention, query, values = make(kind, score, heads)
    memory, beam = read(attention, values), query.shape[1]
    rows = torch.arange(len(values)).repeat_interleave(beam)
    own = memory.select(rows)
    state, expected = attention.start(memory).select(rows), attention.start(own)
    for step in (query.flatten(0, 1), query.flip(1).flatten(0, 1)):
        shared, alone = attention.look(step, memory, state), attention(step.unsqueeze(1), own, expected)
        torch.testing.assert_close(shared.context, alone.context.squeeze(1))
        torch.testing.assert_close(shared.weights, alone.weights.squeeze(1))
        state, expected = shared.state, alone.state
    assert state.position == expected.position == 2
