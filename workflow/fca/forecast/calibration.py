"""In: the jobs of a plan. Out: how fast this machine is at them, measured in some seconds."""

import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import mean
from typing import Any

from fca.forecast.by_stage import LARGEST_BATCH
from fca.forecast.jobs import Forecast
from fca.forecast.measure import seconds
from fca.forecast.model_sizes import trained as sizes_of
from fca.planning.jobs import Job

PASSES = ("models", "coefficients", "replay", "layers", "execution")  # stages that run a network
LARGEST = 1e10  # operations of a measured pass: a fraction of a second on one core
MOST_AT_ONCE = 4  # processes that are measured beside each other, as jobs run


@dataclass(frozen=True)
class Calibration:
    """Seconds that a command takes before it works, and of one operation, by model and purpose."""

    start_network: float
    start_analysis: float
    per_flop: Mapping[tuple[str, bool], float]  # (model's job, trained)

    def seconds(self, forecast: Forecast, job: Job) -> float:
        """Of one job on this machine, while others run beside it."""
        found = forecast.needs(job)
        if job.stage not in PASSES:
            # ASSUME: analysis takes about so many times what it takes to start, measured on the
            # default audit; passes over the coefficients take 20 ns a value.
            return self.start_analysis * ANALYSIS.get(job.stage, 1.0) + 2e-8 * found.analysed
        model = forecast.model_of(job)
        assert model is not None
        return self.start_network + self.per_flop[model, found.trained] * found.flops


ANALYSIS = {"effects": 3.0, "variance": 1.2}


def calibrate(forecast: Forecast, jobs: list[Job], cores: int) -> Calibration:
    """Measure what the jobs will do: start, pass, train.

    A large model is measured with fewer layers and inputs, an imported one as a dense model of its
    width. Several processes measure at once, since jobs share memory and caches too.
    """
    config = forecast.plan.config
    wanted = {
        (model, job.stage == "models"): job
        for job in jobs
        if job.stage in PASSES and (model := forecast.model_of(job)) is not None
    }
    at_once = max(1, min(cores // config["passes"]["threads"], MOST_AT_ONCE))
    per_flop = {}
    known: dict[Task, float] = {}  # models of several seeds are measured once
    with ProcessPoolExecutor(at_once, mp_context=get_context("spawn")) as pool:
        for (model, trained), job in wanted.items():
            own = forecast.arguments(job)
            kind, architecture = stand_in(forecast, model)
            threads = own["threads"] if trained else config["passes"]["threads"]
            task = reduced(kind, architecture, own["batch_size"], trained)
            if task not in known:
                arguments = (
                    kind,
                    dict(task.architecture),
                    task.batch_size,
                    trained,
                    own.get("device", "cpu"),
                    threads,
                )
                runs = [pool.submit(seconds, *arguments) for _ in range(at_once)]
                known[task] = mean(run.result() for run in runs) / task.flops
            per_flop[model, trained] = known[task]
    return Calibration(start("fca.stages.replay", at_once), start("fca.stages.effects", at_once), per_flop)


@dataclass(frozen=True)
class Task:
    """A pass or step that is small enough to be measured, and its operations."""

    kind: str
    architecture: tuple[tuple[str, Any], ...]
    batch_size: int
    flops: float


def stand_in(forecast: Forecast, model: str) -> tuple[str, dict[str, Any]]:
    """Kind and architecture of a model that can be built here in a moment."""
    job, sizes, length = forecast.plan.jobs[model], forecast.model(model), forecast.text.length
    if job.stage == "models":
        own = dict(job.arguments["architecture"])
        return job.arguments["kind"], {"vocabulary": sizes.vocabulary, "length": length, **own}
    kind = "mudd" if job.arguments["kind"] == "mudd" else "dense"
    width = max(sizes.width // 64, 1) * 64
    shape = {"layers": sizes.layers, "width": width, "heads": width // 64}
    return kind, {"vocabulary": sizes.vocabulary, "length": length, **shape}


def reduced(kind: str, architecture: dict[str, Any], batch_size: int, trained: bool) -> Task:
    """With fewer inputs, then fewer layers, until one pass or step is a matter of a second."""
    batch = batch_size or LARGEST_BATCH

    def flops() -> float:
        tokens = batch * architecture["length"] * (3 if trained else 1)
        return sizes_of(kind, architecture).flops(architecture["length"]) * tokens

    while flops() > LARGEST and batch > 1:
        batch //= 2
    while flops() > LARGEST and architecture["layers"] > 2:
        architecture = architecture | {"layers": architecture["layers"] // 2}
    return Task(kind, tuple(sorted(architecture.items())), batch, flops())


def start(module: str, at_once: int) -> float:
    """Seconds from nothing to a stage's first line, with so many starting together."""
    command = [sys.executable, "-c", f"import fca.cli.app, {module}"]
    rounds = []
    for _ in range(2):  # the first one reads from the disk
        started = time.perf_counter()
        running = [subprocess.Popen(command) for _ in range(at_once)]
        for process in running:
            process.wait()
        rounds.append(time.perf_counter() - started)
    return min(rounds)
