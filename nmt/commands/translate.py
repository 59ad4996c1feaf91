"""`nmt translate`: translates sentences, one output line per input line; or scores given
translations.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from nmt.commands.options import (
    Extension,
    OutputOptions,
    TranslateOptions,
    instances,
    options_from,
)
from nmt.errors import NmtError
from nmt.lines import open_output
from nmt.plugins import extras, import_object

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator
OptionsT = TypeVar("OptionsT", bound=OutputOptions)


EXTENSIONS: list[type[Extension]] = [
    import_object(extra.translate) for extra in extras().values() if extra.translate is not None
]


def checked(
    dataclass: type[OptionsT], values: Mapping[str, Any]
) -> tuple[OptionsT, Sequence[Extension]]:
    """The options of a command, with the overrides of extras, and those that extras add.

    Raises:
        typer.BadParameter: options do not go together.
    """
    options, *extensions = instances([dataclass, *EXTENSIONS], values)
    options.check()
    for extension in extensions:
        extension.check(options)
    added = [override for extension in extensions for override in extension.overrides]
    return replace(options, set_=[*added, *(options.set_ or ())]), extensions


def wrapped(translator: "Translator", extensions: Sequence[Extension]) -> "Translator":
    """The translator with what extras add."""
    return reduce(lambda inner, extension: extension.wrap(inner), extensions, translator)


@options_from(TranslateOptions, *EXTENSIONS)
def command(**values: Any) -> None:
    from nmt.commands.translate_lines import check_output_files, open_input, output_lines
    from nmt.run.load import load_translator

    options, extensions = checked(TranslateOptions, values)
    if sys.stdout is None and options.output is None:
        raise NmtError("stdout is closed; write into a file with -o")
    # All input and output is checked before the first sentence is translated.
    document = next(filter(None, (each.open(options) for each in extensions)), None)
    inputs = None if document is not None else open_input(options.sentences or [], options.file)
    check_output_files(options.output, options.attention)
    translator = load_translator(
        options.run or None,
        device=options.device,
        overrides=options.overrides,
        n_best=options.n_best,
    )
    if options.prefix is not None:
        translator.prefix_ids([options.prefix])
    translator = wrapped(translator, extensions)
    if document is not None:
        with open_output(options.output) as stream:
            for piece in document.translated(translator):
                stream.buffer.write(piece)
                stream.buffer.flush()
        return
    assert inputs is not None
    lines = output_lines(translator, inputs, options, options.attention)
    if inputs.is_keyboard:
        end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
        print(f"nmt: type a sentence, Enter translates it; {end}", file=sys.stderr)
    with open_output(options.output) as stream:
        for line in lines:
            stream.write(f"{line}\n")
            stream.flush()
