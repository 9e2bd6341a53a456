"""The official conformance suite against sansmcp, in both roles: `python -m tests.conformance`.

`server` and `client` are what it is run against: an `App` and a client that do what the suite's
scenarios ask for, built on the public API alone. `run` starts the suite and says what came of it.
"""
