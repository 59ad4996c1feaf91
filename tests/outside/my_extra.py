"""The rows of an extra outside of nmt: each names one part of my_parts.py or my_text.py."""

from nmt.plugins import Command, Extra, Part

EXTRA = Extra(
    commands={"greet": Command("Results", "Greet somebody.", "my_parts:greet")},
    keys={"training": "my_keys:TrainingKeys", "decoding": "my_keys:DecodingKeys"},
    rank="my_parts:rank",
    rows={
        "cells": {"minimal": Part("my_parts:MinimalCell")},
        "decoders": {"late": Part("my_parts:LateDecoder")},
        "tokenizers": {"blanks": Part("my_text:BlankTokenizer", text="blanks (at spaces)")},
        "metrics": {
            "length": Part("my_parts:length_error", title="length error", lower_is_better=True)
        },
        "formats": {
            "notes": Part(
                texts="my_text:find",
                suffixes=(".notes",),
                opens="nmt.extras.documents.document:open_document",
            )
        },
        "filters": {
            "yes": Part("my_text:drop_yes", rule="my_text:says_yes", summary="my_text:yes_rows")
        },
        "loss_terms": {"sharpness_loss": Part("my_parts:sharpness_loss")},
    },
)
