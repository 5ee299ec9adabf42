#!/usr/bin/env bash
# Runs in the new environment, in the folder that snakemake was started in.
set -euo pipefail
python -m pip install --no-deps --editable .
