"""From runs to a translator of texts."""

from collections.abc import Sequence
from pathlib import Path

from nmt.config.parts import DeviceName
from nmt.config.schema import Config
from nmt.decoding.translator import Translator
from nmt.plugins import hooks
from nmt.run.confidence import load_confidence
from nmt.run.folder import CONFIDENCE_FILE, load_run_config
from nmt.run.load import build_translator, unchanged
from nmt.texts.glossary import Glossary
from nmt.texts.translator import Settings, TextTranslator, TranslationMemory


def load_text_translator(
    members: Sequence[tuple[Path, Path]],
    settings: Settings | None = None,
    glossary: Glossary | None = None,
    *,
    device: DeviceName = "auto",
    overrides: Sequence[str] = (),
    n_best: int = 1,
) -> TextTranslator:
    """A translator of texts with the models of runs; the confidence is that of the first one.

    Args:
        members: pairs of a run and one of its checkpoints, as `nmt.run.load.opened` gives them.
        settings: how to treat texts. glossary: terms that must be translated as it says.
        device, overrides, n_best: as of `nmt.run.load.load_translator`.

    Raises:
        As `nmt.run.load.load_translator`.
    """
    run, checkpoint = members[0]
    with unchanged(members):
        translator = build_translator(members, device=device, overrides=overrides, n_best=n_best)
        confidence = (
            load_confidence(run, checkpoint, translator.options)
            if (run / CONFIDENCE_FILE).exists()
            else None
        )
        memory = find_memory(translator, load_run_config(run))
    return TextTranslator(
        translator, settings, glossary=glossary, memory=memory, confidence=confidence
    )


def find_memory(translator: Translator, config: Config) -> TranslationMemory | None:
    """The first memory that an extra finds. config: of the first run."""
    used = config.model_copy(update={"decoding": translator.options})
    memories: list[TranslationMemory | None] = [find(translator) for find in hooks("memory", used)]
    return next((each for each in memories if each is not None), None)
