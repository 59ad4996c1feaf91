"""A lexicon of a run: it translates unknown words, and shortens the list of candidates."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "lexicon": Command(
            "Translation",
            "Learn a lexicon from a run's data. It translates unknown words and makes "
            "decoding.shortlist possible.",
            "nmt.extras.lexicon.command:command",
        )
    },
    keys={"decoding": "nmt.extras.lexicon.keys:DecodingKeys"},
    rules="nmt.extras.lexicon.rules:rules",
    wrap="nmt.extras.lexicon.lexicon:wrap",
    words="nmt.extras.lexicon.lexicon:words",
    files="nmt.extras.lexicon.lexicon:files",
    run_files=("lexicon.tsv",),
)
