"""The standard streams of this process, for a server that has them for itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

POSIX: Final = os.name == "posix"


@contextmanager
def standard_streams() -> Iterator[tuple[int, int]]:
    """The real standard input and output, out of everybody else's reach."""
    printed = sys.stdout
    if printed is not None:
        printed.flush()
    real = os.dup(0), os.dup(1)
    blocking = [os.get_blocking(fd) for fd in real]
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a standard error
        os.dup2(null, 1)
    os.close(null)
    sys.stdout = sys.stderr
    try:
        yield real
    finally:
        sys.stdout = printed
        if printed is not None:
            # what was printed to the object that others kept belongs to standard error
            with suppress(OSError, ValueError):
                printed.flush()
        for fd, original, was in zip((0, 1), real, blocking, strict=True):
            os.set_blocking(original, was)
            os.dup2(original, fd)
            os.close(original)
