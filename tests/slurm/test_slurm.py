"""The smoke audit through a real SLURM. Run by `make test-slurm`, as root on Debian."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
CLUSTER = Path(__file__).parent / "cluster.sh"
PROFILE = ["--workflow-profile", "profiles/slurm", "--jobs", "2", "--latency-wait", "10"]
SMALL = ["--default-resources", "slurm_partition=debug", "mem_mb=1500*attempt", "runtime=5*attempt"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    state = tmp_path_factory.mktemp("slurm")
    subprocess.run([CLUSTER, "start", state], check=True)
    yield state
    subprocess.run([CLUSTER, "stop", state], check=True)


def clone(folder: Path) -> Path:
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, folder)
    for name in ("rules", "analyses", "envs", "profiles", "workflow"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    # a small node: what the profile asks for each rule is cut down to what it has
    profile = folder / "profiles/slurm/config.yaml"
    text = profile.read_text().split("set-resources:")[0]
    text += "set-resources:\n  train_model: {mem_mb: 1500 * attempt, runtime: 5 * attempt}\n"
    profile.write_text(text + "set-threads: {measure_execution: 2}\n")
    return folder


def command(*arguments: str) -> list[str]:
    return [str(BIN / "snakemake"), *arguments, "--configfile", "analyses/smoke.yaml"]


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}


def finished(state: Path) -> list[dict[str, str]]:
    """One entry per job that SLURM finished, from its own completion log."""
    lines = (state / "jobcomp.txt").read_text().splitlines()
    return [dict(part.split("=", 1) for part in line.split() if "=" in part) for line in lines]


def manifests(folder: Path) -> set[str]:
    return {
        str(p.parent.relative_to(folder)) for p in (folder / "results/store").glob("[!.]*/*/manifest.json")
    }


@pytest.fixture(scope="module")
def audit(cluster, tmp_path_factory):
    folder = clone(tmp_path_factory.mktemp("cluster"))
    done = subprocess.run(
        command("all", *PROFILE, *SMALL), cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_jobs_were_slurms(audit, cluster):
    jobs = finished(cluster)
    assert len(jobs) >= len(manifests(audit))
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}


def test_results_equal_a_local_run(audit, tmp_path):
    folder = clone(tmp_path)
    local = [
        str(BIN / "snakemake"),
        "effects",
        "variance",
        "--cores",
        "2",
        "--configfile",
        "analyses/smoke.yaml",
    ]
    subprocess.run(local, cwd=folder, env=environment(), check=True, capture_output=True)
    index = json.loads((audit / "results/smoke/index.json").read_text())
    compared = 0
    for model in index["models"]:
        for stage in ("effects", "variance"):
            if stage in model["artifacts"]:
                file = Path("results/store") / model["artifacts"][stage] / f"{stage}.csv"
                pd.testing.assert_frame_equal(pd.read_csv(audit / file), pd.read_csv(folder / file))
                compared += 1
    assert compared == 4


def test_a_job_over_its_limit_is_sent_again_with_more(cluster, tmp_path):
    """200 MB are too few for the first attempt; the second gets ten times as many."""
    folder = clone(tmp_path)
    profile = folder / "profiles/slurm/config.yaml"
    profile.write_text(profile.read_text().split("set-resources:")[0].replace("4000 * attempt", "1500"))
    before = len(finished(cluster))
    limits = ["--set-resources", "extract_inputs:mem_mb=60 if attempt == 1 else 1500"]
    done = subprocess.run(
        command("inputs", *PROFILE, *limits), cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    states = [job["JobState"] for job in finished(cluster)[before:]]
    assert states[-1] == "COMPLETED"
    assert len(states) == 2
    assert states[0] != "COMPLETED"


def test_a_cancelled_run_goes_on_where_it_was(cluster, tmp_path):
    folder = clone(tmp_path)
    arguments = command("variance", *PROFILE, *SMALL)
    running = subprocess.Popen(
        arguments, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 240
    while len(manifests(folder)) < 2:
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(1)
    running.send_signal(signal.SIGINT)
    running.wait(timeout=120)
    kept = manifests(folder)
    made = {name: (folder / name / "manifest.json").stat().st_mtime_ns for name in kept}
    done = subprocess.run(arguments, cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert kept < manifests(folder)
    assert all((folder / name / "manifest.json").stat().st_mtime_ns == time_ for name, time_ in made.items())
