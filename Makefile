# `make run` shows the compiler at work, `make test` is what CI runs; both make .venv from the lock files first.

BIN := .venv/bin
UV := uv==0.13.8
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist worksteal
ON_DEVICE := bench/tma.py bench/gallery.py bench/times.py
ALONE := bench/peers.py bench/blackwell.py bench/problems.py
SOURCES := src tests examples docs/figures docs/site .ci $(wildcard bench)

.PHONY: help run test check long proofs snapshot bench peers problems device dist docs lock format clean

help:                    ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## */\1\t/p' $(MAKEFILE_LIST) | expand -t 10

run: .venv/.run          ## the demo: one program checked, compiled, run on the CPU and as emulated CUDA
	@$(BIN)/python examples/demo.py

test: .venv/.dev         ## the checks beside the short test suite, and how long that took
	@start=$$(date +%s); mkdir -p .cache; \
	make --no-print-directory check >.cache/check.log 2>&1 & checks=$$!; \
	trap 'kill $$checks 2>/dev/null' INT TERM; \
	$(PYTEST) -m "not long" --forbid-skips; tests=$$?; \
	wait $$checks; checked=$$?; cat .cache/check.log; \
	took=$$(($$(date +%s) - start)); printf 'make test: %d min %d s\n' $$((took / 60)) $$((took % 60)); \
	exit $$((tests || checked))

check: .venv/.dev        ## ruff, pyright, the order of imports, sizes of files
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/pyright
	$(BIN)/python .ci/sizes.py src

long: .venv/.dev         ## the long suite
	$(PYTEST) -m long

proofs: .venv/.dev       ## proves every plan that the short tests make (1 hour)
	$(PYTEST) -p tests.proofs -m "not long" tests

snapshot: .venv/.dev     ## what the compiler makes of every example, compared with what is kept, by two orders of hashing
	@PYTHONHASHSEED=0 $(BIN)/python -m tests.snapshot
	@PYTHONHASHSEED=1 $(BIN)/python -m tests.snapshot

bench: .venv/.dev        ## measurements: compile time, emulator rate, CPU code against NumPy and Numba
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-bench.lock
	@for script in $(filter-out $(ON_DEVICE) $(ALONE),$(wildcard bench/*.py)); do $(BIN)/python "$$script" || exit 1; done

peers: .venv/.dev .venv-peers/.made  ## bounds of others' machine code beside ours: Triton, TileLang, CuTe DSL (6 GB of disk, no GPU)
	@.venv-peers/bin/python bench/peers/check_triton.py
	@$(BIN)/python bench/peers.py --json
	@$(BIN)/python bench/blackwell.py --json

problems: .venv/.dev     ## how good the automatic plans of real problems are, by their bounds
	@$(BIN)/python bench/problems.py --json

device: .venv/.dev       ## on a machine with a GPU: results checked; problems, attention and products timed (≤ 15 minutes)
	@PYTHON=$(BIN)/python bench/device.sh

format: .venv/.dev       ## rewrite sources in the house format
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

dist: .venv/.dev         ## the sdist and the wheel, in dist
	$(BIN)/python -m hatchling build -d dist

docs: .venv/.dev         ## the documents as a site, in build/docs: every warning is an error
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	@$(BIN)/python -m sphinx -b html -E -W --keep-going -q -j auto -c docs/site docs build/docs
	@echo build/docs/index.html

lock: .venv/.dev         ## renew the lock files from pyproject.toml (needs the network)
	@$(BIN)/python -m pip install --quiet $(UV)
	@.ci/lock $(BIN)/uv

clean:                   ## remove the environment and every cache
	rm -rf .venv .venv-peers .cache build dist out .pytest_cache .ruff_cache .hypothesis

.venv/.run: requirements.lock pyproject.toml
	@.ci/venv run

.venv/.dev: requirements-dev.lock pyproject.toml
	@.ci/venv dev

.venv-peers/.made: requirements-peers.lock
	@$(BIN)/python -m venv .venv-peers
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-peers.lock
	@touch $@
