"""Names that command-line options accept. This module does not import pydantic, which would slow
down `nmt --help`.
"""

from typing import Literal

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
TrainingPrecision = Literal["auto", "float32", "bfloat16"]
EvaluationSplit = Literal["dev", "test"]
PointerName = Literal["best", "last"]
