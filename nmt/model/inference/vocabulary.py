"""A part of the target vocabulary, for search with a shortlist."""

from torch import Tensor, nn

from nmt.model.inference.pack import InferenceLinear, linear_of


class RestrictedEmbedding(nn.Module):
    """An embedding of only the words `ids` [v], numbered in that order."""

    def __init__(self, embedding: nn.Module, ids: Tensor) -> None:
        super().__init__()
        self.embedding, self.ids = embedding, ids

    def forward(self, ids: Tensor) -> Tensor:
        """[B] -> what the whole embedding gives."""
        return self.embedding(self.ids[ids])  # type: ignore[no-any-return]


def select_outputs(linear: nn.Module, ids: Tensor) -> nn.Module:
    """A linear layer with only the outputs `ids` [v], in that order; the layer may be packed."""
    if isinstance(linear, nn.Linear):
        return linear_of(linear.weight[ids], linear.bias[ids])
    assert isinstance(linear, InferenceLinear)
    return linear.select(ids)
