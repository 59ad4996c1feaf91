"""`nmt export`: writes a run as ONNX, with a translator that needs neither torch nor nmt."""

from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import BeamOption, DecodingOption, RunOrBundleArgument, decoding_overrides
from nmt.errors import DataError
from nmt.extras.export.folder import export_run
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
    """Export the best checkpoint of a run.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        ConfigError: an override is invalid, or asks for something that the exported translator does
            not do.
        DataError: a file of the run is missing or damaged, or `output` exists.
    """
    with opened(folder) as (run, checkpoint):
        source = run.resolve()
        if folder is not None and folder.is_file():  # a bundle
            source = folder.with_suffix("")
        output = output or source.with_name(f"{source.name}-onnx")
        if output.exists():
            raise DataError(f"{output}: exists; delete it, or choose another folder with -o")
        export_run(run, checkpoint, output, decoding_overrides(set_, beam))
    size = sum(path.stat().st_size for path in output.iterdir())
    print(f"{output}: {size / 1e6:.1f} MB; it translates without nmt and torch:")
    print(f"pip install -r {output / 'requirements.txt'}")
    print(f'python {output / "translate.py"} "A sentence."')
