"""What holds for every test, whoever started them."""

from __future__ import annotations

import signal

# A shell starts its background jobs with the interrupt ignored, and children inherit that; the tests
# that interrupt a child need it to listen.
signal.signal(signal.SIGINT, signal.default_int_handler)
