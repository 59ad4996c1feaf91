"""Names that options of the commands take. Without pydantic, whose import would slow down `nmt --help`."""

from typing import Literal

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
EvaluationSplit = Literal["dev", "test"]
PointerName = Literal["best", "last"]
