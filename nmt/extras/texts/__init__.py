"""Texts, not only sentences: lines of several sentences, placeholders, tags, numbers, terms; and
the confidence in a translation.
"""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "runs calibrate": Command(
            "Commands",
            "Measure on the dev set how probable it is that a translation is good, for "
            "--least-confidence.",
            "nmt.extras.texts.calibrate:command",
        )
    },
    translate="nmt.extras.texts.options:TextOptions",
    confidence="nmt.extras.texts.confidence:load",
    listener="nmt.extras.texts.calibrate:AfterTraining",
    files="nmt.extras.texts.confidence:files",
    run_files=("confidence.json",),
    install="texts",
)
