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
    translator="nmt.extras.neighbors.memory:with_memory",
    translate="nmt.extras.neighbors.options:MemoryOptions",
    files="nmt.extras.neighbors.model:files",
    run_files=("neighbors.tsv", "neighbors.safetensors"),
)
