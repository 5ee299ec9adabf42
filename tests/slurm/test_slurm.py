"""The smoke audit through a real SLURM. Run by `make test-slurm`, as root on Debian."""

import ast
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
        command("all", *PROFILE), cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_jobs_were_slurms(audit, cluster):
    """One per artifact, but analysis jobs share one, and so do the outputs."""
    jobs = finished(cluster)
    made = [name.split("/")[-2] for name in manifests(audit)]
    grouped = [stage for stage in made if stage in ("profiles", "variance", "effects")]
    assert len(jobs) == len(made) - len(grouped) + len(set(grouped)) + 1
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    assert (audit / "results/smoke/report.html").is_file()
    assert list((audit / "results/slurm").rglob("*.log")) == []  # kept for jobs that failed


def test_a_job_gets_the_threads_and_the_gpu_it_asked_for(cluster, tmp_path):
    """Seen from inside a job: what torch, numpy, dask, Blosc and Zarr are told, and CUDA."""
    folder = clone(tmp_path)
    (folder / "show.py").write_text("import os; print(dict(os.environ))")
    rules = folder / "rules/inputs.smk"
    rules.write_text(rules.read_text().replace('"fca inputs', '"python show.py > told; fca inputs'))
    profile = folder / "profiles/slurm/config.yaml"
    profile.write_text(profile.read_text() + 'set-resources:\n  extract_inputs: {gres: "gpu:1"}\n')
    done = subprocess.run(
        command("inputs", *PROFILE, "--set-threads", "extract_inputs=2"),
        cwd=folder, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = ast.literal_eval((folder / "told").read_text())
    for name in ("OMP_NUM_THREADS", "DASK_NUM_WORKERS", "BLOSC_NTHREADS", "ZARR_THREADING__MAX_WORKERS"):
        assert told[name] == "2"
    assert told["CUDA_VISIBLE_DEVICES"] == "0"


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
                file = Path("results/store") / model["artifacts"][stage] / "tables" / f"{stage}.csv"
                pd.testing.assert_frame_equal(pd.read_csv(audit / file), pd.read_csv(folder / file))
                compared += 1
    assert compared == 4


def test_a_job_over_its_limit_is_sent_again_with_more(cluster, tmp_path):
    """200 MB are too few for the first attempt; the second gets ten times as many."""
    folder = clone(tmp_path)
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


def test_a_training_over_its_time_limit_goes_on_with_more_time(cluster, tmp_path):
    """One minute is too short; the next attempt has two, and goes on from the last saved state."""
    folder = clone(tmp_path)
    overlay = folder / "long.yaml"
    overlay.write_text(
        "models: [{name: dense, kind: dense, seeds: [0]}]\nbackbone: {layers: 6, width: 96, heads: 4}\n"
        "training: {steps: 800, batch_size: 16}\ninputs: {length: 128}\n"
    )
    before = len(finished(cluster))
    limits = ["--set-resources", "train_model:runtime=attempt"]
    done = subprocess.run(
        [*command("models", *PROFILE, *limits), "long.yaml"],
        cwd=folder, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = [job["JobState"] for job in finished(cluster)[before:]]
    assert "TIMEOUT" in jobs
    assert jobs[-1] == "COMPLETED"
    (curve,) = (folder / "results/store/models").glob("*/training.csv")
    assert pd.read_csv(curve)["step"].tolist() == list(range(800))


def test_a_cancelled_run_goes_on_where_it_was(cluster, tmp_path):
    folder = clone(tmp_path)
    arguments = command("variance", *PROFILE)
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
