"""Random damage to valid inputs, for scripts/fuzz.py."""

import random
import re
from collections.abc import Sequence

# What is rare at random, but means something to a reader.
TOKENS = (
    *b"\0|\t|\n|\r\n|\xff|\xed\xa0\x80|\xef\xbb\xbf|\xff\xfe|\xe2\x80\xa8|\x1b[2J|../".split(b"|"),
    *b"'|\"|*|\\|\\ud800|null|true|NaN|-1|0|1e999|{}|[]|&a |*a|!!x |<<: |--- |- |: |? ".split(b"|"),
    *b"#|PK\x03\x04|PK\x05\x06|\x1f\x8b\x08\0|BZh9|\xfd7zXZ\0|\x28\xb5\x2f\xfd|PAR1".split(b"|"),
    *(b"[" * 3000, b"{" * 50, b"9" * 30, b"9" * 5000, b"a" * 9000, "\u0301".encode() * 500),
    *(b'"shape":[99999999999]', b'"data_offsets":[0,9]', b"<!DOCTYPE x [<!ENTITY a 'b'>]>"),
    *(b"&a;", b"F64"),
)
# Scalars in JSON, and in the one-line forms of YAML; and what may stand there.
SCALAR = re.compile(rb'(?<=[:\[,] )(?:"[^"]*"|[-+.\w]+)')
VALUES = (
    b"9" * 20,
    *b'null|true|"x"|""|-1|1.5|1e999|[]|{}|[{"x":1}]|NaN|"a\\nb"|"../x"'.split(b"|"),
)


def mutate(seeds: Sequence[bytes], generator: random.Random) -> bytes:
    """Change one of the inputs in up to eight places."""
    content = bytearray(generator.choice(seeds))
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        start = generator.randrange(len(content) + 1)
        end = min(len(content), start + generator.choice((1, 1, 2, 4, 16, 256)))
        change, other = generator.randrange(8), generator.choice(seeds)
        if change == 0 and (values := [*SCALAR.finditer(content)]):
            start, end = generator.choice(values).span()
        if change == 1 and start < len(content):
            content[start] ^= 1 << generator.randrange(8)
        elif change == 7:
            del content[start:]
        else:
            of_other = other[generator.randrange(len(other) + 1) :][: generator.choice((1, 8, 512))]
            repeated = content[start:end] * generator.choice((2, 3, 50))
            token = generator.choice(TOKENS)
            choices = (
                generator.choice(VALUES),
                generator.randbytes(1),
                b"",
                repeated,
                of_other,
            )
            content[start:end] = (*choices, token, token + content[start:end], b"")[change]
    return bytes(content)
