"""A run as a system under test: what it makes of the sentences to score on, and where that comes from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt import runs
from nmt.config import Config
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.evaluation import provenance
from nmt.sections import DeviceName
from nmt.text.aligned import Aligned


@dataclass(frozen=True)
class System:
    """A run with its best checkpoint.

    Attributes:
        step: updates that the checkpoint has seen; of an average, those of the last of its members.
    """

    folder: Path
    config: Config
    checkpoint: Path
    step: int
    translator: Translator

    @property
    def lowercase(self) -> bool:
        """Whether it writes lower-case."""
        return self.config.tokenizer.lowercase

    def describe(self, text: Aligned) -> str:
        """For the reader, in a line."""
        step = f"average up to step {self.step}" if self.checkpoint.name.startswith("average-") else f"step {self.step}"
        return f"{self.folder}, {step}, {text.name}, {len(text):,} sentences, beam {self.translator.options.beam}"

    def translate(self, text: Aligned) -> list[Translation]:
        """The sources, which must be known."""
        assert text.sources is not None
        return self.translator.translate(text.sources)

    def facts(self) -> dict[str, Any]:
        """For machines: how it was searched, and the hashes of all it was made of."""
        options = self.translator.options
        return {
            "run": str(self.folder),
            "step": self.step,
            "beam": options.beam,
            "length_penalty": options.length_penalty,
            "decoding": options.model_dump(mode="json"),
            "provenance": provenance.of_run(self.folder, self.checkpoint),
        }


def load(folder: Path | None, *, device: DeviceName = "auto", beam: int | None = None) -> System:
    """A run (default: the one trained last), ready to translate.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        ConfigError, DataError: the run's configuration, vocabularies or tokenizers are missing or damaged.
    """
    folder = runs.find(folder)
    checkpoint = runs.find_checkpoint(folder)
    translator = runs.load_translator(folder, checkpoint=checkpoint, device=device, beam=beam)
    step = int(checkpoint.name.rpartition("-")[2])
    return System(folder, runs.load_config(folder), checkpoint, step, translator)
