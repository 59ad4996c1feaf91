"""A lexicon of a run: it shortens the list of candidates of a step of search."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "lexicon": Command(
            "Translation",
            "Learn a lexicon from a run's data, for decoding.shortlist.",
            "nmt.extras.lexicon.command:command",
        )
    },
    keys={"decoding": "nmt.extras.lexicon.keys:DecodingKeys"},
    rules="nmt.extras.lexicon.lexicon:rules",
    wrap="nmt.extras.lexicon.lexicon:wrap",
    files={"lexicon.tsv": "nmt.extras.lexicon.lexicon:load_lexicon"},
)
