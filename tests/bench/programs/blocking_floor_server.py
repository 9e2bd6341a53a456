"""A bare echo server on standard input and output that waits for one line after the other."""

import os
import sys

from tests.bench.floor_calls import codec
from tests.bench.programs.floor_server import answer

if __name__ == "__main__":
    loads, dumps = codec(sys.argv[1])
    for line in sys.stdin.buffer:
        os.write(1, dumps(answer(loads(line))) + b"\n")
