"""The fast form of a trained model, for search: packed weights, precomputed gates, and a smaller
vocabulary.

`for_search` copies a model and replaces submodules of the copy, so the classes of `nmt.model` stay
plain.
"""

import torch
from torch import Tensor, nn

from nmt.config.schema import Precision
from nmt.decoding import int8
from nmt.decoding.pack import PackedLinear, PackFn, pack_linears, replace_submodules
from nmt.decoding.steps import GateTable, replace_stacks
from nmt.model.readout import Readout
from nmt.model.recurrent import FusedLayer
from nmt.model.seq2seq import Seq2Seq

PACK_FUNCTIONS: dict[Precision, PackFn] = {"float32": PackedLinear.of, "int8": int8.Int8Linear.of}
MAX_TABLE_SIZE = 1 << 26  # numbers in the table of precomputed gates: 256 MB


@torch.no_grad()
def for_search(model: Seq2Seq, precision: Precision = "float32") -> Seq2Seq:
    """A fast copy of a model, with its weights as they are now: for search, not for training.

    The recurrence, the readout and the output layer have packed weights. The encoder, which reads
    each sentence once, and the attention are the model's own. On a GPU the model itself is
    returned.

    Args:
        precision: of the packed weights. The precomputed gates are not rounded.

    Raises:
        ConfigError: this machine or this build of torch does not support the precision.
    """
    if precision == "int8":
        int8.check_available(model.device)
    elif model.device.type != "cpu":
        return model
    pack, embedding, decoder = PACK_FUNCTIONS[precision], model.tgt_embedding, model.decoder
    first, readout = decoder.recurrent.layers[0], pack_linears(decoder.readout, pack)
    if (
        isinstance(first, FusedLayer)
        and embedding.num_embeddings * len(first.weights[0]) <= MAX_TABLE_SIZE
    ):
        size = embedding.embedding_dim
        table = GateTable(embedding.weight * embedding.scale, first)
        decoder = replace_submodules(
            replace_stacks(decoder, pack, size), readout=EmbeddingReadout(readout, size)
        )
        return replace_submodules(
            model, tgt_embedding=table, decoder=decoder, output=pack_linears(model.output, pack)
        )
    decoder = replace_submodules(replace_stacks(decoder, pack), readout=readout)
    return replace_submodules(model, decoder=decoder, output=pack_linears(model.output, pack))


class EmbeddingReadout(Readout):
    """A readout whose words are rows of `GateTable`: it reads their first E numbers, the
    embedding.
    """

    def __init__(self, readout: Readout, embedding_size: int) -> None:
        nn.Module.__init__(self)
        self.readout, self.embedding_size, self.output_size = (
            readout,
            embedding_size,
            readout.output_size,
        )

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return self.readout(state, embedded[..., : self.embedding_size], context)  # type: ignore[no-any-return]
