# `make help` lists the targets. Everything runs from .venv and policies/venv, which `setup` makes.

STACK ?= dev
KUBERNETES ?= real
PYTHON ?= python3
BIN := .venv/bin
# Two workers: an engine test runs the CLI, the program and the pack side by side, which fills about one core.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup preview up refresh destroy inventory stop test test-faults test-cluster bench lint format clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.ready policies/venv/.ready  ## everything the other targets need: both Python environments and the Pulumi CLI
	@$(BIN)/python -m sandbox.cli

.venv/.ready: requirements.txt requirements-dev.txt
	@echo "Installing the Python environment .venv ..."
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

policies/venv/.ready: policies/requirements.txt
	@echo "Installing the policy pack's environment policies/venv ..."
	@test -x policies/venv/bin/python || $(PYTHON) -m venv policies/venv
	@policies/venv/bin/pip install --quiet --disable-pip-version-check -r policies/requirements.txt
	@touch $@

preview: setup  ## preview a stack on the sandbox, policies on: make preview STACK=prod
	@$(BIN)/python -m sandbox preview --stack $(STACK)

up: setup  ## make a stack on the sandbox, policies on: make up STACK=prod (KUBERNETES=echo without a real control plane)
	@$(BIN)/python -m sandbox up --stack $(STACK) --kubernetes $(KUBERNETES)

refresh: setup  ## compare a stack's state with what exists on the sandbox
	@$(BIN)/python -m sandbox refresh --stack $(STACK)

destroy: setup  ## delete everything that a stack has made on the sandbox
	@$(BIN)/python -m sandbox destroy --stack $(STACK)

inventory: setup  ## list what exists on the sandbox; the last line counts it
	@$(BIN)/python -m sandbox inventory --stack $(STACK)

stop: setup  ## stop the sandbox's control planes now; they stop by themselves after ten idle minutes
	@$(BIN)/python -m sandbox stop

test: lint  ## types, style and every test that needs no cluster
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup -m 'not lifecycle and not cluster'

test-faults: setup  ## every fault, kills of up and destroy, and the whole life of each stack (about 12 minutes; FULL=1 for all kills)
	@$(BIN)/python -m pytest -q tests/lifecycle -n $(WORKERS) --dist loadgroup -m lifecycle

test-cluster: setup  ## the whole life and the faults of a stack on a real Kubernetes (about 10 minutes, and 15 to build it once)
	@$(BIN)/python -m sandbox.cluster.tools
	@$(BIN)/python -m pytest -q tests/cluster -n $(WORKERS) --dist loadfile -m cluster

bench: setup  ## how parallel `up` is against its critical path and the order of AWS's sample (about 2 minutes)
	@$(BIN)/python -m benchmarks.up_parallelism

lint: setup  ## ruff and pyright (strict for components and policies)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright

format: setup  ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

clean:  ## remove both environments and the sandbox's state (the cache outside the checkout stays)
	rm -rf .venv policies/venv .sandbox .pytest_cache .ruff_cache .hypothesis
