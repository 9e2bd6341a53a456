# Needs make and a Python 3.11 or newer; everything else is installed below this folder.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python3.14 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input -qq
STAMP := $(VENV)/.stamp
SECONDS ?= 60
# Some tests wait long and are next to each other: who has nothing left takes from the others.
PYTEST_ARGS ?= -n auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help env demo test test-matrix test-fast lint format peers conformance bench fuzz docs wheel-check lock clean

help: ## say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 14

env: $(STAMP) ## make the environment in .venv, once

$(STAMP): pyproject.toml requirements/dev.txt
	@test -n "$(PYTHON)" || { echo "sansmcp needs Python 3.11 or newer, with its venv module" >&2; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) install -r requirements/dev.txt
	$(PIP) install --no-build-isolation --no-deps --editable .
	@touch $@

demo: env ## see both eras at work, over child processes, HTTP and memory
	$(PY) -m sansmcp_cli.demo

peers: env ## install the real peers into .peers, once
	$(PY) -m tests.peers.setup

test: env peers ## run the tests, the real peers included, but for the matrix
	$(PY) -m pytest $(PYTEST_ARGS) -m "not matrix"

test-matrix: env ## run the tests of every binding over every transport
	$(PY) -m pytest $(PYTEST_ARGS) -m matrix

test-fast: env ## run the tests that need nothing but Python, but for the matrix
	$(PY) -m pytest $(PYTEST_ARGS) -m "not interop and not matrix"

lint: env ## check style, format and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(PY) tools/derive_bindings.py --check

format: env ## write the house style
	$(VENV)/bin/ruff check --fix-only .
	$(VENV)/bin/ruff format .

conformance: env peers ## run the official conformance suite against both roles
	$(PY) -m tests.conformance

bench: env peers ## measure, as ratios against the official SDK and the floor
	$(PY) -m tests.bench

fuzz: env ## fuzz for SECONDS=60 in all, each target its share
	$(PY) -m fuzz.run --seconds $(SECONDS)

docs: env ## build the documentation, offline
	$(VENV)/bin/sphinx-build -W --keep-going -q -b html docs docs/_build/html

wheel-check: env ## build the wheel and import every package of it in an empty environment
	$(PY) -m tests.wheel_check

# Freezes what the groups of pyproject.toml resolve to today; run it with the oldest Python that has to work, since
# packages ask for more. The markers are lost by a freeze and put back.
lock: ## renew requirements/dev.txt
	rm -rf .build/lock && $(PYTHON) -m venv .build/lock
	.build/lock/bin/python -m pip --disable-pip-version-check -q install "pip>=25.1"
	.build/lock/bin/python -m pip --disable-pip-version-check -q install --group dev hatchling editables
	.build/lock/bin/python -m pip --disable-pip-version-check -q install --no-build-isolation --editable ".[fast,cli,trio]"
	{ echo "# The development environment, made by 'make lock'."; \
	  .build/lock/bin/python -m pip --disable-pip-version-check freeze --exclude-editable --exclude sansmcp \
	  | sed -E "s/^(atheris==.*)/\1 ; python_version < '3.14' and sys_platform == 'linux'/" \
	  | sed -E "s/^(uvloop==.*)/\1 ; sys_platform != 'win32' and implementation_name == 'cpython'/"; } > .build/dev.txt
	mv .build/dev.txt requirements/dev.txt

clean: ## forget what was built and the environment; the peers stay
	rm -rf $(VENV) .build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis fuzz/findings
	find . -name __pycache__ -type d -not -path './.peers/*' -prune -exec rm -rf {} +
