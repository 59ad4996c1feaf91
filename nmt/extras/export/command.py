"""`nmt export`: writes a run as ONNX, with a translator that needs neither torch nor nmt.

encoder.onnx  step.onnx  settings.json  src.vocab.txt  tgt.vocab.txt  [src.spm.model]  translate.py
requirements.txt
"""

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt import __version__
from nmt.commands.options import BeamOption, DecodingOption, RunOrBundleArgument, decoding_overrides
from nmt.config.schema import Config
from nmt.config.section import key_of
from nmt.decoding.translator import WordlessLines
from nmt.errors import ConfigError, DataError
from nmt.extras.export import translate
from nmt.extras.export.graphs import export_graphs
from nmt.extras.lexicon.lexicon import LEXICON_FILE, Lexicon
from nmt.files import new_folder, sha256_of, write_json, write_text
from nmt.run.folder import load_run_config, load_vocabularies
from nmt.run.load import load_model, opened, unchanged
from nmt.text.tokenizers import SIDES, load_tokenizer, model_path

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


def export_run(run: Path, checkpoint: Path, output: Path, overrides: Sequence[str]) -> None:
    """Write the exported run into the new folder `output`.

    Args:
        overrides: `decoding.key=value`.

    Raises:
        CheckpointError: the checkpoint cannot be read, or the run was changed meanwhile.
        ConfigError: an override is invalid, or asks for something that the exported translator does
            not do.
        DataError: vocabularies, tokenizers or lexicon of the run are missing or damaged.
    """
    with new_folder(output) as folder, unchanged([(run, checkpoint)]):
        config = load_run_config(run, overrides)
        _check_is_exported(config)
        settings = _settings(run, config)
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
