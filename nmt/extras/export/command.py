"""`nmt export`: writes a run as ONNX, with a translator that needs neither torch nor nmt."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import BeamOption, DecodingOption, RunOrBundleArgument, decoding_overrides
from nmt.errors import DataError, NmtError
from nmt.run.load import opened


def command(
    folder: RunOrBundleArgument = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write. Default: RUN-onnx.", metavar="DIR"),
    ] = None,
    beam: BeamOption = None,
    set_: DecodingOption = None,
) -> None:
    """The command line."""
    print(run(folder, output, decoding_overrides(set_, beam)))


def run(folder: Path | None, output: Path | None = None, overrides: Sequence[str] = ()) -> str:
    """Export the best checkpoint of a run. Returns lines for the user.

    Args:
        folder: of the run, or of one of its checkpoints, or a bundle; default: the newest run.
        output: the new folder; default: RUN-onnx.
        overrides: `decoding.key=value`.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        ConfigError: an override is invalid, or asks for something that the exported translator does
            not do.
        DataError: a file of the run is missing or damaged, or `output` exists.
        NmtError: the packages of the extra `export` are missing.
    """
    for package in ("onnx", "onnxruntime"):
        if find_spec(package) is None:
            raise NmtError(
                f"nmt export needs the package {package}; install it with `pip install "
                "'nmt[export]'`"
            )
    from nmt.extras.export.folder import export_run

    with opened(folder) as (run_folder, checkpoint):
        source = (
            folder.with_suffix("")
            if folder is not None and folder.is_file()
            else run_folder.resolve()
        )
        output = output or source.with_name(f"{source.name}-onnx")
        if output.exists():
            raise DataError(f"{output}: exists; delete it, or choose another folder with -o")
        export_run(run_folder, checkpoint, output, overrides)
    size = sum(path.stat().st_size for path in output.iterdir())
    return (
        f"{output}: {size / 1e6:.1f} MB; it translates without nmt and torch:\n"
        f"pip install -r {output / 'requirements.txt'}\n"
        f'python {output / "translate.py"} "A sentence."'
    )
