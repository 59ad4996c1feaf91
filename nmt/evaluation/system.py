"""A run, or several as one, as a system under test: what it makes of the sentences to score on, and where that comes from."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config.schema import Config, DeviceName
from nmt.data.corpus import load_manifest
from nmt.data.evaluation_set import EvaluationSet
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.evaluation import provenance
from nmt.run.checkpoint import MODEL_FILE, is_average, step_of
from nmt.run.folder import load_run_config
from nmt.run.load import build_translator, find_run_and_checkpoint

BEAM = "decoding.beam"


@dataclass(frozen=True)
class System:
    """A run with its best checkpoint, or an ensemble of several.

    Attributes:
        members: the run and the checkpoint of each; the first says how they decode.
        config: of the first.
        overrides: the keys of decoding that are not as the first is configured, and their values.
    """

    members: Sequence[tuple[Path, Path]]
    config: Config
    overrides: dict[str, Any]
    translator: Translator

    @property
    def folders(self) -> list[Path]:
        """The runs."""
        return [run for run, _ in self.members]

    @property
    def steps(self) -> list[int]:
        """Updates that each checkpoint has seen; of an average, those of the last of its members."""
        return [step_of(checkpoint.name) for _, checkpoint in self.members]

    @property
    def contents(self) -> list[str]:
        """The hash of the data that each was trained on. Raises: DataError if a manifest is damaged."""
        return [load_manifest(run)["content"] for run in self.folders]

    @property
    def lowercase(self) -> bool:
        """Whether it writes lower-case."""
        return self.config.tokenizer.lowercase

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target."""
        return self.config.data.src_language, self.config.data.tgt_language

    @property
    def name(self) -> str:
        """For the file that its translations are kept in: another where anything of it is not as the run has it by itself."""
        checkpoint = self.members[0][1].name if len(self.members) == 1 else f"ensemble-of-{len(self.members)}"
        name = f"{checkpoint}-beam-{self.translator.options.beam}"
        others = {key: value for key, value in self.overrides.items() if key != BEAM}
        weights = [provenance.digest(checkpoint / MODEL_FILE) for _, checkpoint in self.members] if len(self.members) > 1 else []
        if not others and not weights:
            return name
        return f"{name}-{hashlib.sha256(json.dumps([weights, others]).encode()).hexdigest()[:8]}"

    def describe(self, text: EvaluationSet) -> str:
        """For the reader, in a line."""
        step = f"step{'s' if len(self.steps) > 1 else ''} {' + '.join(map(str, self.steps))}"
        if len(self.members) == 1 and is_average(self.members[0][1].name):
            step = f"average up to {step}"
        others = [f"{key}={_written(value)}" for key, value in self.overrides.items() if key != BEAM]
        beam = f"beam {self.translator.options.beam}"
        return ", ".join([" + ".join(map(str, self.folders)), step, text.name, f"{len(text):,} sentences", beam, *others])

    def translate(self, text: EvaluationSet) -> list[Translation]:
        """The sources, which must be known."""
        assert text.sources is not None
        return self.translator.translate(text.sources)

    def facts(self) -> dict[str, Any]:
        """For machines: how it was searched, and the hashes of all it was made of."""
        options = self.translator.options
        return {
            "run": str(self.folders[0]),
            "step": self.steps[0],
            "beam": options.beam,
            "length_penalty": options.length_penalty,
            "decoding": options.model_dump(mode="json"),
            "overrides": self.overrides,
            "provenance": provenance.of_members(self.members),
        }


def load(folders: Sequence[Path] = (), *, device: DeviceName = "auto", overrides: Sequence[str] = ()) -> System:
    """A run, or one of its checkpoints, ready to translate (default: the run trained last); several are an ensemble.

    Args:
        overrides: `decoding.key=value`, in place of what the run is configured to do.

    Raises:
        CheckpointError: a folder holds no run, or one that cannot be read; or the vocabularies of an ensemble differ.
        ConfigError, DataError: the run's configuration, vocabularies or tokenizers are missing or damaged.
        ConfigError: an override is not of decoding, or not possible.
    """
    members = [find_run_and_checkpoint(path) for path in folders] or [find_run_and_checkpoint(None)]
    translator = build_translator(members, device=device, overrides=overrides)
    config = load_run_config(members[0][0])
    own, used = (options.model_dump(mode="json") for options in (config.decoding, translator.options))
    changed = {f"decoding.{key}": value for key, value in used.items() if value != own[key]}
    return System(members, config, changed, translator)


def _written(value: Any) -> str:
    """As it is typed after --set."""
    return value if isinstance(value, str) else json.dumps(value)
