# Two commands do everything: `make audit` and `make test`. Both set up what they need, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES ?= all
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: audit smoke test lint clean

audit: $(VENV)/audit.done
	snakemake --cores $(CORES) all
	fca summary --index results/default/index.json

smoke: $(VENV)/audit.done
	snakemake --cores $(CORES) all --configfile analyses/smoke.yaml
	fca summary --index results/smoke/index.json

test: $(VENV)/test.done
	pytest

lint: $(VENV)/test.done
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile rules
	mypy
	snakemake --lint

# What is installed is locked in requirements.lock; pyproject.toml holds the ranges.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/audit.done: pyproject.toml requirements.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable .
	touch $@

$(VENV)/test.done: pyproject.toml requirements.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[hf,dev]'
	touch $@ $(VENV)/audit.done

clean:
	rm -rf results .snakemake
