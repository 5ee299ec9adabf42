"""The examples and the README's ten lines run as they stand."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny import build as build_trained_like

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_examples_run(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "my_audit.py"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "cross_input" in done.stdout


@pytest.mark.slow
def test_the_readmes_ten_lines_run(capsys):
    import re

    text = (ROOT / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    assert len([line for line in code.splitlines() if line and not line.startswith("import")]) <= 10
    tokens = np.random.default_rng(0).integers(0, 50, size=(20, 16))
    texts = {"evaluation": tokens[:10], "others": tokens[10:]}
    exec(code, {"model": build_trained_like("featuregate"), **texts})
    assert capsys.readouterr().out.count("nats per token") == 3
