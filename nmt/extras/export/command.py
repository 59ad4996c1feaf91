"""`nmt export`: writes a run as a folder that translates without torch, see folder.py; with --web,
runs as a page that translates in any browser, see web_page.py.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import BeamOption, DecodingOption
from nmt.config.load import decoding_overrides
from nmt.errors import DataError
from nmt.extras.export.store import Weights
from nmt.run.load import opened


def command(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Run folder or bundle; with --web perhaps several, side by side. Default: the "
            "newest in runs/.",
            metavar="RUN",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write. Default: RUN-onnx.", metavar="DIR"),
    ] = None,
    web: Annotated[
        Path | None,
        typer.Option(
            "--web",
            help="Write a page instead that translates in any browser, without a server: a folder "
            "of static files, or one file if the name ends with .html.",
            metavar="DIR|FILE.html",
        ),
    ] = None,
    weights: Annotated[
        Weights | None,
        typer.Option(
            "--weights",
            help="How --web stores numbers: int8 (default) takes a quarter of the space; float32 "
            "is exact.",
        ),
    ] = None,
    beam: BeamOption = None,
    set_: DecodingOption = None,
) -> None:
    """Export the best checkpoint of a run.

    Raises:
        typer.BadParameter: options or runs do not go together.
        CheckpointError: there is no run, or it cannot be read.
        ConfigError: an override is invalid, or the run cannot be exported.
        DataError: a file of the run is missing or damaged, or `output` exists.
    """
    paths: Sequence[Path | None] = folders or [None]
    overrides = decoding_overrides(set_, beam)
    if web is not None:
        if output is not None:
            raise typer.BadParameter("-o writes a folder, and --web a page; give one of them")
        # This and folder.py need other extras; the help of the command does not.
        from nmt.extras.export.web_page import write_web

        write_web(paths, web, weights or "int8", overrides)
        print(f"{web}: {_size(web) / 1e6:.1f} MB; it translates without nmt, in any browser:")
        print(f"python -m http.server -d {web}" if web.is_dir() else f"open {web}")
        return
    if weights is not None:
        raise typer.BadParameter("--weights is for --web")
    if len(paths) > 1:
        raise typer.BadParameter(f"{len(paths)} runs: only --web takes several")
    from nmt.extras.export.folder import REQUIREMENTS_FILE, write_folder

    with opened(paths[0]) as (run, checkpoint):
        source = run.resolve()
        if paths[0] is not None and paths[0].is_file():  # a bundle
            source = paths[0].with_suffix("")
        output = output or source.with_name(f"{source.name}-onnx")
        if output.exists():
            raise DataError(f"{output}: exists; delete it, or choose another folder with -o")
        write_folder(run, checkpoint, output, overrides)
    print(f"{output}: {_size(output) / 1e6:.1f} MB; it translates without torch:")
    print(f"pip install -r {output / REQUIREMENTS_FILE}")
    print("pip install --no-deps nmt")
    print(f'nmt translate --run {output} "A sentence."')


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    return sum(each.stat().st_size for each in (path, *path.rglob("*")) if each.is_file())
