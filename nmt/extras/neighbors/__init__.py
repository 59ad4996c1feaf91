"""Similar pairs of the training data or of a user's memory: the model also looks at their
translations.
"""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "neighbors": Command(
            "Translation",
            "Store a run's training pairs in the run, so that translation can look at similar "
            "ones: decoding.neighbors.",
            "nmt.extras.neighbors.command:command",
        )
    },
    keys={"decoding": "nmt.extras.neighbors.keys:DecodingKeys"},
    wrap="nmt.extras.neighbors.model:wrap",
    memory="nmt.extras.neighbors.memory:memory",
    files={
        "neighbors.tsv": "nmt.extras.neighbors.model:load_pairs",
        "neighbors.safetensors": "nmt.extras.neighbors.datastore:read_keys",
    },
    needs=("init",),
)
