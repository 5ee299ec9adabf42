"""`fca sites` lists what is found in a model."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_sites_command(tmp_path):
    fca_ = Path(sys.executable).parent / "fca"

    def sites(*arguments, status=0):
        done = subprocess.run(
            [fca_, "sites", *arguments], capture_output=True, text=True, cwd=ROOT / "examples"
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    listed = sites(str(ROOT / "tests/data/tiny_muddpythia"))
    assert "own: 4 sites" in listed
    assert "mixers.3" in listed
    assert "[batch, token, 1, 5] float32" in listed
    assert "no known controller in MyModel" in sites("my_model:make")
    assert "cannot be imported" in sites("my_model:missing", status=1)
