"""The environments for clusters hold what is required, as it is locked, and say the same as each other."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
ENVS = ROOT / "envs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHON = PROJECT["requires-python"].removeprefix(">=")
# where conda's name for the same files is another
CONDA = {
    "dask": "dask-core",  # with numpy, which is named too, it is dask[array]
    "matplotlib": "matplotlib-base",
    "snakemake": "snakemake-minimal",
    "torch": "pytorch",
}
SECTIONS = {"arguments", "files", "post", "environment", "runscript"}


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = (line.split("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pins}


def dockerfile(instruction: str) -> list[str]:
    """What stands behind an instruction, wherever it occurs."""
    text = (ENVS / "Dockerfile").read_text().replace("\\\n", " ")
    return re.findall(rf"^{instruction}\s+(.*)$", text, flags=re.MULTILINE)


def definition() -> dict[str, str]:
    """The sections of Apptainer's file; what comes before them is its header."""
    header, *parts = re.split(r"^%", (ENVS / "fca.def").read_text(), flags=re.MULTILINE)
    return {"header": header, **dict(part.split("\n", 1) for part in parts)}


def commands(script: str) -> list[str]:
    lines = (line.strip() for line in script.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def scripts() -> dict[str, str]:
    parts = definition()
    return {
        **{name: parts[name] for name in ("post", "environment", "runscript")},
        **{f"RUN {i}": command for i, command in enumerate(dockerfile("RUN"))},
        "post-deploy": (ENVS / "fca.post-deploy.sh").read_text(),
    }


def test_conda_holds_what_is_required_as_it_is_locked():
    pins, required = locked(), [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["hf"]]
    names = [canonicalize_name(Requirement(each).name) for each in required]
    expected = [f"python={PYTHON}", "pip", *(f"{CONDA.get(name, name)}={pins[name]}" for name in names)]
    assert sorted(yaml.safe_load((ENVS / "fca.yaml").read_text())["dependencies"]) == sorted(expected)


def test_images_have_the_same_base():
    (base,) = dockerfile("FROM")
    header = dict(line.split(": ") for line in commands(definition()["header"]))
    assert header == {"Bootstrap": "docker", "From": base}
    assert base.startswith(f"python:{PYTHON}-")


def test_images_copy_what_the_package_is_made_of():
    needed = {"pyproject.toml", "requirements.lock", "workflow", PROJECT["readme"], *PROJECT["license-files"]}
    assert all((ROOT / name).exists() for name in needed)
    copied = [line.split() for line in dockerfile("COPY")]
    assert {name for *names, _ in copied for name in names} == needed
    assert all(target == ("workflow" if "workflow" in names else "./") for *names, target in copied)
    files = dict(line.split() for line in commands(definition()["files"]))
    (folder, _) = dockerfile("WORKDIR")
    assert files == {name: f"{folder}/{name}" for name in needed}


def test_images_install_by_the_same_command():
    (install,) = dockerfile("RUN")
    (folder, _) = dockerfile("WORKDIR")
    (argument,) = dockerfile("ARG")
    assert install == "python -m pip install --no-cache-dir --constraint requirements.lock '.[hf]'"
    parts = definition()
    assert commands(parts["arguments"]) == [f"{argument}="]
    export = f'export {argument}="{{{{ {argument} }}}}"'
    assert commands(parts["post"]) == [export, f"cd {folder}", install]
    assert set(parts) == SECTIONS | {"header"}


@pytest.mark.parametrize("arguments", [[], ["fca", "--help"]], ids=["default", "command"])
def test_what_an_image_runs(arguments, tmp_path):
    (default,) = map(json.loads, dockerfile("CMD"))
    assert default == ["snakemake", "--cores", "all"]
    for name in ("snakemake", "fca"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tmp_path / name).chmod(0o755)
    run = ["/bin/sh", "-ec", definition()["runscript"], "runscript", *arguments]
    done = subprocess.run(run, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == (arguments or default)


def test_users_own_packages_stay_out_of_the_container():
    script = definition()["environment"] + '\necho "$PYTHONNOUSERSITE,$PYTHONPATH"'
    environment = {**os.environ, "PYTHONPATH": "/somewhere"}
    done = subprocess.run(["/bin/sh", "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "1,"


def test_any_user_has_a_name_and_a_home():
    assert dockerfile("ENV") == ["HOME=/tmp USER=fca"]


@pytest.mark.parametrize("name", scripts())
def test_scripts_parse(name):
    done = subprocess.run(["bash", "-n"], input=scripts()[name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="hadolint is a binary for Linux here")
def test_linter_is_content():
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, ENVS / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
