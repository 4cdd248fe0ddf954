# Everything is made inside .venv, from the locked and hashed versions. `make` lists the targets.

PYTHON ?= python3
BIN = .venv/bin
INSTALL = $(BIN)/uv pip install -q --python $(BIN)/python
# A process per core; tests that share what was set up stay together (tests/conftest.py).
TEST = $(BIN)/python -m pytest --numprocesses=auto --dist=loadfile --no-loadscope-reorder \
	--durations=10
COMPILE = $(BIN)/uv pip compile -q pyproject.toml --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate

# Without cached bytecode every process compiles the libraries anew: twice the time.
unexport PYTHONDONTWRITEBYTECODE

# uv does not read the settings of pip.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
ifdef PIP_CERT
export SSL_CERT_FILE ?= $(PIP_CERT)
endif

.PHONY: help demo test lowest slow exhaustive check bench bench-scale docs lock clean

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):[^#]*## */  make \1\t/'

demo: .venv/run ## one table, two releases: the first published, the second refused
	$(BIN)/ppdm demo

test: .venv/dev ## the tests to run while you work; without the extended and the slow ones
	$(TEST) -m "not slow and not extended and not exhaustive"

lowest: .venv/uv ## all tests but the slow ones, with the oldest versions that pyproject.toml allows
	$(BIN)/uv pip compile -q pyproject.toml --extra dev --extra cluster --resolution lowest-direct \
		--python-version 3.11 --no-header --no-annotate -o .venv/lowest.txt
	$(BIN)/uv venv -q --clear --python $(BIN)/python .venv/lowest
	$(BIN)/uv pip install -q --python .venv/lowest/bin/python -r .venv/lowest.txt
	$(BIN)/uv pip install -q --python .venv/lowest/bin/python --no-deps -e .
	.venv/lowest/bin/python -m pytest --numprocesses=auto --dist=loadfile --no-loadscope-reorder \
		-W ignore::pytest.PytestRemovedIn10Warning  # by the estimator checks of old scikit-learn

# One process more than there are cores: many of these tests wait for clocks and servers.
slow: .venv/dev ## the slow tests
	$(TEST) --numprocesses=$$($(BIN)/python -c "import os; print(os.cpu_count() + 1)") \
		-m "slow and not exhaustive" -rs

exhaustive: .venv/dev ## complete sweeps of what the slow tests try on a selection; about an hour
	$(TEST) -m exhaustive -rs

check: .venv/dev ## what CI runs: ruff, mypy, all tests but the slow ones
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy ppdm_core warehouse tasks flows ppdm benchmarks
	$(TEST)

bench: .venv/bench ## ratios against peers, measured in the same run; see docs/benchmarks.md
	$(BIN)/python -m benchmarks

bench-scale: .venv/dev ## releases of 1, 5 and 20 million rows; hours, and about 40 GB of disk
	$(BIN)/python -m benchmarks.scale 1000000 5000000 20000000
	$(BIN)/python -m benchmarks.scale --effort standard 1000000

docs: .venv/dev ## write docs/reference from the registered methods, attacks and metrics
	$(BIN)/python -m studies.write_reference_pages

lock: .venv/uv ## resolve the dependencies anew
	$(COMPILE) --upgrade -o requirements.lock
	$(COMPILE) --upgrade --extra dev --extra cluster -c requirements.lock -o requirements-dev.lock
	$(COMPILE) --upgrade --extra bench -c requirements-dev.lock -o requirements-bench.lock

clean: ## remove everything that was made here
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis demo build dist *.egg-info benchmarks/results.json
	find . -name .git -prune -o -type d \( -name .ppdm -o -name __pycache__ \) -prune -exec rm -rf {} +

.venv/uv:
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else \
		"Python 3.11, 3.12 or 3.13 is needed, for example: make PYTHON=python3.11 test")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q uv==0.13.7
	@touch $@

.venv/run: requirements.lock pyproject.toml .venv/uv
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --no-deps -e .
	@touch $@

.venv/dev: requirements-dev.lock .venv/run
	$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

.venv/bench: requirements-bench.lock .venv/run
	$(INSTALL) --require-hashes -r requirements-bench.lock
	@touch $@
