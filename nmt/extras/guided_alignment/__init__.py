"""Guided alignment: attention learns the word alignments of the lexical bias."""

from nmt.plugins import Extra, Part

EXTRA = Extra(
    keys={"training": "nmt.extras.guided_alignment.keys:TrainingKeys"},
    rows={
        "loss_terms": {"alignment_loss": Part("nmt.extras.guided_alignment.loss:alignment_loss")}
    },
    rules="nmt.extras.guided_alignment.rules:rules",
)
