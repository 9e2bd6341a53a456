"""What holds for every test, whoever started them."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# A shell starts its background jobs with the interrupt ignored, and children inherit that; the tests
# that interrupt a child need it to listen.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast an example is made or run tells of the machine, and of what else it does, not of the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
