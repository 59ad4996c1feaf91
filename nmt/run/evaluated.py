"""What is evaluated: a run, or an ensemble of several."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config.load import differences
from nmt.config.parts import DeviceName
from nmt.config.schema import Config
from nmt.decoding.translator import Translator
from nmt.evaluation.results import EvaluationSet
from nmt.run import provenance
from nmt.run.checkpoint import is_average, step_of
from nmt.run.folder import load_run_config
from nmt.run.graphs import weights_digest
from nmt.run.load import build_translator, opened

BEAM, PRECISION = "decoding.beam", "decoding.precision"


@dataclass(frozen=True)
class System:
    """A run with its best checkpoint, or an ensemble of several.

    Attributes:
        names: what the user calls each member: a run folder or a bundle.
        members: (run folder, checkpoint folder) each; the decoding options are those of the first.
            Of a bundle, where its files are while the system is open.
        config: the first run's.
        overrides: the decoding keys whose values differ from the first run's configuration.
        translator: translates with all members.
    """

    names: Sequence[Path]
    members: Sequence[tuple[Path, Path]]
    config: Config
    overrides: dict[str, Any]
    translator: Translator

    @property
    def folders(self) -> list[Path]:
        return [run for run, _ in self.members]

    @property
    def file_name(self) -> str:
        """The name, without the split and the suffix, for files with its translations.

        It has a hash of the members, if there are several, and of the overrides other than the
        beam, if there are any.
        """
        start = self.members[0][1].name
        weights = []
        if len(self.members) > 1:
            start = f"ensemble-of-{len(self.members)}"
            weights = [weights_digest(checkpoint) for _, checkpoint in self.members]
        name = f"{start}-beam-{self.translator.options.beam}"
        overrides = {key: value for key, value in self.overrides.items() if key != BEAM}
        if not overrides and not weights:
            return name
        return f"{name}-{hashlib.sha256(json.dumps([weights, overrides]).encode()).hexdigest()[:8]}"

    def describe(self, text: EvaluationSet) -> str:
        """One line for the reader: runs, steps, sentences, decoding options."""
        first, *others = [checkpoint.name for _, checkpoint in self.members]
        steps = " + ".join(str(step_of(name)) for name in (first, *others))
        kind = "average up to step" if is_average(first) else "step"
        facts = [
            " + ".join(map(str, self.names)),
            f"{'steps' if others else kind} {steps}",
            text.name,
            f"{len(text):,} sentences",
            f"beam {self.translator.options.beam}",
            self.translator.model.precision,
        ]
        for key, value in self.overrides.items():
            if key not in (BEAM, PRECISION):
                facts.append(f"{key}={value if isinstance(value, str) else json.dumps(value)}")
        return ", ".join(facts)

    @property
    def ranking_runs(self) -> dict[str, Path]:
        """The other runs that rank its translations, by the name of their section."""
        return {
            name: path for ranker in self.translator.rankers for name, path in ranker.runs.items()
        }

    def facts(self) -> dict[str, Any]:
        """For JSON: decoding options, and hashes of weights, configuration, data and code."""
        sources = provenance.of_members(self.members)
        for name, path in self.ranking_runs.items():
            with opened(path) as member:
                of_ranker = provenance.of_members([member])
            sources[name] = {key: of_ranker[key] for key in ("model", "data")}
        options = self.translator.options
        return {
            "run": str(self.names[0]),
            # of an averaged checkpoint, the step of its last member
            "step": step_of(self.members[0][1].name),
            "beam": options.beam,
            "precision": self.translator.model.precision,
            "length_penalty": options.length_penalty,
            "decoding": options.model_dump(mode="json"),
            "overrides": self.overrides,
            "provenance": sources,
        }


@contextmanager
def open_system(
    paths: Sequence[Path] = (), *, device: DeviceName = "auto", overrides: Sequence[str] = ()
) -> Iterator[System]:
    """Load a run, one of its checkpoints, or a bundle (default: the newest run); several are an
    ensemble.

    Args:
        overrides: `decoding.key=value`, in place of the run's configuration.

    Raises:
        CheckpointError: a folder contains no run or a damaged one, or the vocabularies of an
            ensemble differ.
        ConfigError: a run's configuration is missing or damaged, or an override is invalid.
        DataError: a run's vocabularies or tokenizers are missing or damaged.
    """
    wanted: list[Path | None] = [*paths] or [None]
    with ExitStack() as stack:
        members = [stack.enter_context(opened(path)) for path in wanted]
        names = [
            path if path and path.is_file() else run
            for path, (run, _) in zip(wanted, members, strict=True)
        ]
        translator = build_translator(members, device=device, overrides=overrides)
        config = load_run_config(members[0][0])
        used = config.model_copy(update={"decoding": translator.options})
        changed = {key: value for key, (_, value) in differences(config, used).items()}
        yield System(names, members, config, changed, translator)
