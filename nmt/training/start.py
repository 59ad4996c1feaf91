"""Initial weights that are not random: word vectors, the weights of another run (fine-tuning), and
a lexicon.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from nmt.config.schema import Config
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.extras.vectors.vectors import WordVectors, load_configured_vectors, set_rows
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import MODEL_FILE, read_tensors
from nmt.run.folder import find_checkpoint, find_run, load_run_config, load_vocabularies
from nmt.run.journal import Journal
from nmt.text.tokenizers import Side
from nmt.training.learned_lexicon import LearnedLexicon

TIES = ("none", "target", "all")  # values of model.tie_embeddings, each with fewer matrices


@dataclass(frozen=True)
class ParentWeights:
    """The weights of the run that `training.start_from` names.

    Attributes:
        run: its folder. checkpoint: the name of its best checkpoint.
        tensors: by parameter name; tied parameters appear once.
    """

    run: Path
    checkpoint: str
    tensors: dict[str, torch.Tensor]


@dataclass(frozen=True)
class InitialWeights:
    """The initial weights that a configuration names.

    Attributes:
        vectors: word vectors for the embeddings of each side. They replace those of the parent.
        parent: None without `training.start_from`.
        lexicon: None without `model.lexical_bias`.
    """

    vectors: dict[Side, WordVectors]
    parent: ParentWeights | None
    lexicon: LearnedLexicon | None = None

    @classmethod
    def load(cls, config: Config) -> "InitialWeights":
        """Read the files that the configuration names.

        Raises:
            CheckpointError: the parent is not a run, or has no readable checkpoint.
            DataError: the vocabularies of the parent differ from those of the prepared data, or a
                file of vectors is unusable.
        """
        lexicon = LearnedLexicon.learn(config) if config.model.lexical_bias else None
        return cls(load_configured_vectors(config), _load_parent(config), lexicon)

    def apply(self, model: Seq2Seq, journal: Journal) -> list[str]:
        """Copy them into the model, and write what was copied as the first lines of the journal.

        Returns:
            what was copied, as lines for the user.

        Raises:
            CheckpointError: no parameter of the parent fits.
        """
        lines = []
        journal.rewind(-1)  # a crash before the first checkpoint may have left lines
        if (parent := self.parent) is not None:
            reused, new = _copy_parameters(parent, model)
            total = sum(parameter.numel() for parameter in model.parameters())
            figures = {
                "checkpoint": parent.checkpoint,
                "reused": reused,
                "parameters": total,
                "new": new,
            }
            journal.write("start", 0, run=str(parent.run), **figures)
            counts = f"{reused:,} of {total:,} parameters ({100 * reused / total:.1f} %)"
            new_names = f"; new: {', '.join(new)}" if new else ""
            lines.append(f"starts from {parent.run}, {parent.checkpoint}: {counts}{new_names}")
        for side, vectors in self.vectors.items():
            set_rows(
                model.src_embedding.weight if side == "src" else model.tgt_embedding.weight, vectors
            )
            figures = {
                "found": len(vectors.ids),
                "tokens": vectors.n_tokens,
                "running_share": vectors.running_share,
            }
            journal.write("vectors", 0, side=side, path=str(vectors.path), **figures)
            lines.append(f"{side} vectors: {vectors.coverage}")
        if self.lexicon is not None and model.lexical_bias is not None:
            sizes = self.lexicon.fill(model.lexical_bias)
            journal.write("lexicon", 0, **sizes)
            words = f", and {sizes['words']:,} whole words" if "words" in sizes else ""
            lines.append(
                f"lexicon: {sizes['translations']:,} translations of {sizes['tokens']:,} "
                "source "
                f"tokens{words}"
            )
        return lines


def _load_parent(config: Config) -> ParentWeights | None:
    run = config.training.start_from
    if run is None:
        return None
    checkpoint = find_checkpoint(find_run(run))
    if load_vocabularies(run) != load_vocabularies(config.prepared_folder):
        raise DataError(
            f"training.start_from: the vocabularies of {run} differ from those of "
            f"{config.prepared_folder}; "
            f"prepare it with vocabulary.like: {run}"
        )
    parent_model = load_run_config(run).model
    ties = parent_model.tie_embeddings, config.model.tie_embeddings
    if (
        TIES.index(ties[0]) < TIES.index(ties[1])
        and parent_model.embedding_size == config.model.embedding_size
    ):
        raise ConfigError(
            f"training.start_from: {run} was trained with model.tie_embeddings {ties[0]}, so it "
            "has several matrices where "
            f"{ties[1]} has one; set model.tie_embeddings to {ties[0]}"
        )
    return ParentWeights(run, checkpoint.name, read_tensors(checkpoint / MODEL_FILE))


@torch.no_grad()
def _copy_parameters(parent: ParentWeights, model: Seq2Seq) -> tuple[int, list[str]]:
    """Copy the tensors whose name and shape a parameter of the model has.

    Returns:
        how many numbers were copied, and the names of the parameters that keep their random values.
    """
    reused: dict[int, int] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        tensor = parent.tensors.get(name)
        if tensor is not None and tensor.shape == parameter.shape:
            parameter.copy_(tensor)
            reused[id(parameter)] = parameter.numel()
    if not reused:
        raise CheckpointError(
            f"training.start_from: no weights of {parent.run} have the shapes of this model"
        )
    return sum(reused.values()), [
        name for name, parameter in model.named_parameters() if id(parameter) not in reused
    ]
