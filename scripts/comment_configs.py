"""Write the description of each key as a comment beside it, in all configurations under configs/
and scripts/peers/model-r.yaml.

    python scripts/comment_configs.py [FILE...]

The descriptions are those in `nmt/config/schema.py`. Keys, their order, values and comment-only
lines stay unchanged. Without arguments, also writes configs/schema.json, which editors read.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.config.load import load_config
from nmt.config.yaml_text import comment
from nmt.errors import ConfigError
from nmt.extras.init.command import json_schema

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "configs" / "schema.json"
CONFIGS = [*sorted((ROOT / "configs").glob("*.yaml")), ROOT / "scripts/peers/model-r.yaml"]


def main(arguments: Sequence[str]) -> int:
    """Rewrite the files whose comments differ, and print their names; 1 if a file is not a valid
    configuration.
    """
    for path in map(Path, arguments) if arguments else CONFIGS:
        try:
            load_config(path)
        except ConfigError as error:
            print(error, file=sys.stderr)
            return 1
        before = path.read_text(encoding="utf-8")
        after = comment(before)
        if after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
            print(f"{path}: comments written")
    if not arguments:
        SCHEMA.write_text(
            f"{json.dumps(json_schema(), indent=2, ensure_ascii=False)}\n",
            encoding="utf-8",
            newline="\n",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
