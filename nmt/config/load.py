"""Read a configuration: from YAML or a dictionary, with overrides, checked as a whole."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nmt.config import yaml_text
from nmt.config.problems import Problem, explain, without_wrong_keys
from nmt.config.rules import check_rules
from nmt.config.schema import Config
from nmt.errors import ConfigError, printable

# Keys that have left nmt, with the values that mean "off": these are ignored, so that older runs
# and configurations can be read. A key without such values did nothing alone.
RETIRED: Mapping[str, tuple[Any, ...]] = {
    "vocabulary.tags": (),
    "model.encoder.kind": ("recurrent",),
    "model.encoder.weight_dropout": (0,),
    "model.decoder.weight_dropout": (0,),
    "model.attention.heads": (1,),
    "model.variational_dropout": (False,),
    "model.word_dropout": (0,),
    "model.src_word_dropout": (None, 0),
    "model.tgt_word_dropout": (None, 0),
    "model.src_vectors": (None,),
    "model.tgt_vectors": (None,),
    "model.output": ("softmax",),
    "model.cutoffs": (None,),
    "training.batch.final_size": (None,),
    "training.batch.growth_steps": (),
    "training.curriculum.steps": (0,),
    "training.curriculum.start": (),
    "training.r_drop": (0,),
    "training.risk.weight": (0,),
    "training.risk.candidates": (),
    "training.risk.size": (),
    "training.risk.sharpness": (),
    "training.src_word_replacement": (0,),
    "training.tgt_word_replacement": (0,),
    "training.subword_sampling.src": (0,),
    "training.subword_sampling.tgt": (0,),
    "training.alignment_loss": (0,),
    "training.coverage_loss": (0,),
    "training.moving_average": (0,),
    "training.moving_average_warmup": (False, True),
    "decoding.coverage_penalty": (0,),
    "decoding.epsilon": (0,),
    "decoding.length_formula": ("power",),
    "decoding.lexicon": (True, False),
    "decoding.mbr.candidates": ("beam",),
    "decoding.mbr.samples": (32,),
    "decoding.no_repeat_ngram": (None,),
    "decoding.shortlist": (0,),
}
# The last version that had a key; of all others, it is 0.1.
LAST_VERSIONS = {
    "decoding.coverage_penalty": "0.2",
    "decoding.epsilon": "0.2",
    "decoding.length_formula": "0.2",
    "decoding.lexicon": "0.2",
    "decoding.mbr.candidates": "0.2",
    "decoding.mbr.samples": "0.2",
    "decoding.no_repeat_ngram": "0.2",
    "decoding.shortlist": "0.2",
    "model.attention.heads": "0.2",
    "model.cutoffs": "0.2",
    "model.output": "0.2",
    "model.src_vectors": "0.2",
    "model.tgt_vectors": "0.2",
    "training.alignment_loss": "0.2",
    "training.coverage_loss": "0.2",
    "training.moving_average": "0.2",
    "training.moving_average_warmup": "0.2",
}
# What to do in place of using the last version that had the key.
ADVICE = {
    "decoding.length_formula": "set decoding.length_penalty lower in its place",
    "decoding.shortlist": "set decoding.precision=int8 in its place, which is faster",
}


def load_config(source: str | PathLike[str] | Config, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML file (or take a configuration), apply `key.path=value` overrides, and check the
    result.

    Raises:
        ConfigError: the file cannot be read, or the result is not a valid configuration.
    """
    values, origin = (
        (source.to_dict(), "configuration")
        if isinstance(source, Config)
        else (read_yaml(Path(source)), str(source))
    )
    for override in overrides:
        _override(values, override)
    if overrides:
        origin += " with --set"
    return config_from_dict(values, origin)


def decoding_overrides(set_: Sequence[str] | None, beam: int | None) -> list[str]:
    """The overrides `decoding.key=value` of --set and --beam together."""
    return [*(set_ or ()), *([] if beam is None else [f"decoding.beam={beam}"])]


def config_from_dict(values: dict[str, Any], origin: str = "configuration") -> Config:
    """Check `values` and build the configuration.

    Raises:
        ConfigError: names every problem at once, one per line: the key, the allowed values, and
            similar known keys.
    """
    text = json.dumps(values, default=str, ensure_ascii=False)
    if re.search("[\ud800-\udfff]", text):  # from JSON, which has escapes for them
        raise ConfigError(f"{origin}: half of a surrogate pair is not a character")
    plain_values = json.loads(text)
    problems = _take_retired(plain_values)
    try:
        config = _validate(plain_values)
    except ValidationError as error:
        problems += explain(error)
        config = _validate({"name": "unnamed", **without_wrong_keys(plain_values, error)})
    # Skip rules about keys that are wrong themselves: the rules saw only their defaults.
    wrong = [key for problem in problems for key in problem.keys]
    below = tuple(f"{key}." for key in wrong)
    problems += [
        problem
        for problem in check_rules(config)
        if not any(key in wrong or key.startswith(below) for key in problem.keys)
    ]
    if len(problems) == 1:
        raise ConfigError(f"{origin}: {problems[0]}")
    if problems:
        raise ConfigError("\n  ".join([f"{origin}: {len(problems)} problems", *map(str, problems)]))
    return config


def read_yaml(path: Path) -> dict[str, Any]:
    """The keys and values of a YAML file.

    Raises:
        ConfigError: the file cannot be read, is not valid YAML, or is not a mapping.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(yaml_text.MAX_CHARACTERS + 1)  # whatever the file is, not more
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file; the configurations that come with nmt are in configs/"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: cannot be read as UTF-8 text ({error.reason}); save it as UTF-8"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    values = yaml_text.parse(text, str(path))
    if not isinstance(values, dict):
        content = "nothing" if values is None else "a list" if isinstance(values, list) else "text"
        raise ConfigError(f"{path}: expected `key: value` lines, found {content}")
    return values


def differences(old: Config, new: Config) -> dict[str, tuple[Any, Any]]:
    """Dotted key -> (old value, new value), for each key whose values differ."""
    before, after = (dict(_flatten(each.model_dump(mode="json"))) for each in (old, new))
    return {
        key: (before.get(key), after.get(key))
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    }


def _take_retired(values: dict[str, Any]) -> list[Problem]:
    """Remove the keys that have left nmt; a problem for each that did something."""
    problems = []
    for key, off in RETIRED.items():
        *parents, last = key.split(".")
        sections: list[Any] = [values]
        for parent in parents:
            sections.append(sections[-1].get(parent) if isinstance(sections[-1], dict) else None)
        if not isinstance(sections[-1], dict) or last not in sections[-1]:
            continue
        value = sections[-1].pop(last)
        if not sections[-1]:
            del sections[-2][parents[-1]]
        if off and value not in off:
            version = LAST_VERSIONS.get(key, "0.1")
            advice = ADVICE.get(key, f"use nmt {version} for this run")
            text = (
                f"left nmt after {version}, and is now always {json.dumps(off[0])}; remove it, or "
                f"{advice}"
            )
            problems.append(Problem((key,), text))
    return problems


def _validate(values: dict[str, Any]) -> Config:
    # Strict, and from JSON: this refuses text in place of a number, but accepts the lists and paths
    # that YAML can write.
    return Config.model_validate_json(json.dumps(values), strict=True)


def _override(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"--set {override}: write key=value, for example --set training.epochs=3")
    if key != printable(key):
        raise ConfigError(f"--set {override}: a key has no control characters")
    section = values
    *parents, last = key.strip().split(".")
    if len(parents) > yaml_text.MAX_DEPTH:
        raise ConfigError(
            f"--set {'.'.join(parents[:3])}...: nested more than {yaml_text.MAX_DEPTH} deep; there "
            "is no such key"
        )
    for parent in parents:
        if not isinstance(section.get(parent), dict):
            section[parent] = {}
        section = section[parent]
    section[last] = yaml_text.parse(text, f"--set {override}")


def _flatten(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
