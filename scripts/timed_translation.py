"""Translate in this process for scripts/bench.py, and measure the time from raw text to raw text.

    python scripts/timed_translation.py JOB.json RESULT.json

Loading a model does not count, nor does a first batch, with which a system sets itself up. nmt and
CTranslate2 split and join the texts with the same tokenizers, those of the run. Each imports only
what it needs, so that the memory of the process is its own.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CTRANSLATE2_BATCH = 64  # of 16, 64 and 256 sentences the fastest, in float32 and in int8
WARM_UP = 64  # sentences

Translate = Callable[[Sequence[str]], list[str]]


def load_nmt(job: dict[str, Any]) -> Translate:
    from nmt.run.load import load_translator

    translator = load_translator(Path(job["run"]), device="cpu", overrides=job["settings"])
    return lambda texts: [translation.text for translation in translator.translate(texts)]


def load_ctranslate2(job: dict[str, Any]) -> Translate:
    import ctranslate2

    from nmt.config.load import load_config
    from nmt.text.tokenizers import load_tokenizer

    run = Path(job["run"])
    config = load_config(run / "config.yaml", job["settings"])
    src = load_tokenizer(config.tokenizer, config.data.src_language, "src", run)
    tgt = load_tokenizer(config.tokenizer, config.data.tgt_language, "tgt", run)
    search = {"beam_size": config.decoding.beam, "max_batch_size": CTRANSLATE2_BATCH}
    translator = ctranslate2.Translator(
        job["transformer"],
        compute_type=config.decoding.precision,
        inter_threads=job["threads"],
        intra_threads=1,
    )

    def translate(texts: Sequence[str]) -> list[str]:
        results = translator.translate_batch(src.split_all(texts), **search)
        return [tgt.join(result.hypotheses[0]) for result in results]

    return translate


def main(job_path: str, result_path: str) -> None:
    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    translate = (load_ctranslate2 if job["transformer"] else load_nmt)(job)
    translate(job["groups"]["all"][0][:WARM_UP])
    seconds, outputs = {}, {}
    for name, calls in job["groups"].items():
        start = time.perf_counter()
        outputs[name] = [translate(texts) for texts in calls]
        seconds[name] = time.perf_counter() - start
    Path(result_path).write_text(json.dumps([seconds, outputs["all"][0]]), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
