"""`nmt export`: writes a run as ONNX, with a translator that needs neither torch nor nmt; with
--web, runs as a page that translates in any browser, see web_page.py.

encoder.onnx  step.onnx  settings.json  src.vocab.txt  tgt.vocab.txt  [src.spm.model]  translate.py
requirements.txt
"""

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import BeamOption, DecodingOption
from nmt.config.load import decoding_overrides
from nmt.errors import DataError
from nmt.extras.export import translate
from nmt.extras.export.graphs import export_graphs
from nmt.extras.export.settings import settings_of
from nmt.extras.export.storage import Weights, shrink
from nmt.files import new_folder, sha256_of, write_json, write_text
from nmt.run.folder import load_run_config
from nmt.run.load import opened, unchanged
from nmt.run.weights import load_model
from nmt.text.tokenizers import model_path


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
        ConfigError: an override is invalid, or asks for something that the exported translator does
            not do.
        DataError: a file of the run is missing or damaged, or `output` exists.
    """
    paths: Sequence[Path | None] = folders or [None]
    overrides = decoding_overrides(set_, beam)
    if web is not None:
        if output is not None:
            raise typer.BadParameter("-o writes ONNX, and --web a page; give one of them")
        # It needs another extra, the help of the command and ONNX do not.
        from nmt.extras.export.web_page import write_web

        write_web(paths, web, weights or "int8", overrides)
        print(f"{web}: {_size(web) / 1e6:.1f} MB; it translates without nmt, in any browser:")
        print(f"python -m http.server -d {web}" if web.is_dir() else f"open {web}")
        return
    if weights is not None:
        raise typer.BadParameter("--weights is for --web")
    if len(paths) > 1:
        raise typer.BadParameter(f"{len(paths)} runs: only --web takes several")
    with opened(paths[0]) as (run, checkpoint):
        source = run.resolve()
        if paths[0] is not None and paths[0].is_file():  # a bundle
            source = paths[0].with_suffix("")
        output = output or source.with_name(f"{source.name}-onnx")
        if output.exists():
            raise DataError(f"{output}: exists; delete it, or choose another folder with -o")
        export_run(run, checkpoint, output, overrides)
    print(f"{output}: {_size(output) / 1e6:.1f} MB; it translates without nmt and torch:")
    print(f"pip install -r {output / 'requirements.txt'}")
    print(f'python {output / "translate.py"} "A sentence."')


def export_run(run: Path, checkpoint: Path, output: Path, overrides: Sequence[str]) -> None:
    """Write the exported run into the new folder `output`.

    Args:
        overrides: `decoding.key=value`.

    Raises:
        CheckpointError: the checkpoint cannot be read, or the run was changed meanwhile.
        ConfigError: an override is invalid, or asks for something that the exported translator does
            not do.
        DataError: vocabularies or tokenizers of the run are missing or damaged.
    """
    with new_folder(output) as folder, unchanged([(run, checkpoint)]):
        config = load_run_config(run, overrides)
        settings = settings_of(run, config)
        graphs = folder / "encoder.onnx", folder / "step.onnx"
        export_graphs(load_model(run, checkpoint).eval(), *graphs)
        if config.decoding.precision == "int8":
            from onnxruntime.quantization import QuantType, quantize_dynamic

            level = logging.root.manager.disable
            logging.disable(logging.WARNING)  # advice to prepare the graph, of no use here
            for graph in graphs:  # products with weights get 8-bit integers
                quantize_dynamic(
                    graph,
                    graph,
                    op_types_to_quantize=["MatMul", "Gemm"],
                    weight_type=QuantType.QInt8,
                    per_channel=True,
                )
                shrink(graph)  # what they left in float32
            logging.disable(level)
        for path in (run / "src.vocab.txt", run / "tgt.vocab.txt", model_path(run, "src")):
            if path.exists():
                shutil.copyfile(path, folder / path.name)
        digests = {path.name: sha256_of(path) for path in sorted(folder.iterdir())}
        write_json(folder / "settings.json", {**settings, "sha256": digests}, indent=1)
        packages, source = "numpy\nonnxruntime\n", settings["tokenizers"]["src"]
        if source["kind"] == "words":
            packages += f"spacy=={source['version']}\n"
        elif source["kind"] != "characters":
            packages += "sentencepiece\n"
        write_text(folder / "requirements.txt", packages)
        shutil.copyfile(translate.__file__, folder / "translate.py")


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    return sum(each.stat().st_size for each in (path, *path.rglob("*")) if each.is_file())
