"""What an extra may add to nmt, and how extras are found.

An extra is a folder of nmt/extras/. The variable NMT_EXTRAS names modules with further extras,
separated by commas; they may stand in the current folder. Each has an object `EXTRA`, whose fields
name classes and functions by their place, "module:object". They stand in other files, which are
imported on use, so that `nmt --help` is fast. The core imports no extra: it asks `extras()`.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from nmt.errors import NmtError

FOLDER, VARIABLE = "nmt.extras", "NMT_EXTRAS"


class Part:
    """A row of a table: a class or function by its place, imported on use.

    Args:
        place: "module:object"; "" for a row that is nothing but its traits.
        traits: what rules and messages must know of it without importing it, and further places.
    """

    def __init__(self, place: str = "", **traits: Any) -> None:
        self.place, self.traits = place, traits

    def load(self, trait: str = "") -> Any:
        """The class or function; with the name of a trait, the one whose place this has."""
        return import_object(self.traits[trait] if trait else self.place)

    def trait(self, name: str) -> Any:
        """Its value; None if the part does not have it."""
        return self.traits.get(name)


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Attributes:
        group: its heading in `nmt --help`. sentence: what it does; the first one stands there.
        place: of a function whose parameters are the arguments and options; "" for a group.
    """

    group: str
    sentence: str
    place: str


@dataclass(frozen=True)
class Extra:
    """What an extra adds. Each place is "module:object".

    Attributes:
        commands: by name; "runs show" is the command `show` of the group `runs`, which has a row
            of its own.
        keys: by section of the configuration, such as "data.cleaning", the place of a `Section`
            with further keys for it.
        rows: by table of nmt/config/parts.py, further rows.
        rules: `rules(config)` yields a `Problem` for each rule between keys that is broken.
        wrap: `wrap(members, run, config)` returns the models that take the place of the members.
        rank: `rank(config, device)` returns a function from translations to translations, or None.
        memory: `memory(translator)` returns a `nmt.texts.translator.TranslationMemory`, or None.
        archive: `opened(path)` opens a file that holds a run, and yields the run's folder.
        listener: `listener(folder, config, step)` returns a function, or None. The training calls
            the function with each event.
        files: what the extra writes into a run and translating reads: the name of each file, and
            the place of `read(path)`, which raises an error for a damaged one.
        install: the optional dependencies of the extra: "serve" for `pip install 'nmt[serve]'`.
        needs: the other extras that it imports.
    """

    commands: Mapping[str, Command] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, Part]] = field(default_factory=dict)
    rules: str | None = None
    wrap: str | None = None
    rank: str | None = None
    memory: str | None = None
    archive: str | None = None
    listener: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    install: str | None = None
    needs: tuple[str, ...] = ()


@cache
def extras() -> Mapping[str, Extra]:
    """All extras by name: those of nmt in the order of their names, then those of the user.

    Raises:
        NmtError: a module of the user is missing, or has no `EXTRA`.
    """
    folders = sorted(Path(__file__).parent.joinpath(FOLDER.partition(".")[2]).glob("*/__init__.py"))
    found: dict[str, Extra] = {}
    with suppress(ModuleNotFoundError):  # whoever wants the core alone may block the folder
        for folder in folders:
            found[folder.parent.name] = import_module(f"{FOLDER}.{folder.parent.name}").EXTRA
    if names := os.environ.get(VARIABLE):
        sys.path.append(os.getcwd())  # the command `nmt` does not look there
        for name in names.split(","):
            try:
                found[name] = import_module(name).EXTRA
            except (AttributeError, ImportError) as error:
                raise NmtError(
                    f"{VARIABLE}: {name}: {error}; name modules with an object EXTRA, which import "
                    "nothing of nmt but nmt.plugins"
                ) from None
    return found


def import_object(place: str) -> Any:
    """The object of a place.

    Raises:
        NmtError: an extra needs a library that is not installed.
    """
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        extra = extras().get(module.removeprefix(f"{FOLDER}.").partition(".")[0])
        if extra is None or extra.install is None or library == "nmt":
            raise
        raise NmtError(
            f"needs {library}, which is not installed: `pip install 'nmt[{extra.install}]'`"
        ) from None


def hooks(name: str, config: Any = None) -> list[Callable[..., Any]]:
    """The loaded objects of all extras whose field `name` is set; with a configuration, only of
    those that it uses.
    """
    return [
        import_object(place)
        for extra in extras().values()
        if (place := getattr(extra, name)) and (config is None or is_used(extra, config))
    ]


def is_used(extra: Extra, config: Any) -> bool:
    """Whether a configuration sets a key of the extra, or a method of decoding that it adds. An
    extra without keys is always used.
    """
    if not extra.keys or config.decoding.method in extra.rows.get("methods", {}):
        return True
    return any(
        attrgetter(f"{section}.{key}")(config) != default
        for section, place in extra.keys.items()
        for key, default in import_object(place)()
    )
