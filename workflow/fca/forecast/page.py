"""In: a plan. Out: a table of what it will take, printed before anything runs."""

from collections.abc import Sequence

from fca.forecast.calibration import Calibration, calibrate
from fca.forecast.devices import accelerator
from fca.forecast.jobs import Forecast
from fca.forecast.needs import MB
from fca.forecast.schedule import makespan
from fca.planning.jobs import Job
from fca.planning.plan import Plan

# ASSUME: what Snakemake takes, measured with the default audit: to plan, and for each job.
ENGINE_START, ENGINE_JOB = 4.0, 0.15
# ASSUME: tables, figures and report, in units of what starting an analysis takes.
OUTPUTS = 12.0


def print_forecast(plan: Plan, cores: int, gpu: str | None, measure: bool) -> None:
    """Jobs to do and there already, operations, bytes, memory and time, by stage and in all."""
    forecast = Forecast(plan)
    device = accelerator(gpu) if gpu else None
    pending = [job for job in plan.jobs if not forecast.there(job)]
    calibration = calibrate(forecast, pending, cores) if measure and pending else None
    print(f"analysis {plan.config['analysis']}, store {plan.store.root}")
    print(f"{'stage':<13} {'to do':>5} {'there':>5} {'TFLOP':>10} {'stored':>9} {'memory':>9} {'alone':>9}")
    stages = dict.fromkeys(job.stage for job in plan.jobs)
    for stage in (*stages, "all"):
        planned = [job for job in plan.jobs if stage in (job.stage, "all")]
        jobs = [job for job in pending if stage in (job.stage, "all")]
        there = len(planned) - len(jobs)
        print(f"{stage:<13} {len(jobs):>5} {there:>5} {line(forecast, jobs, calibration)}")
    if calibration:
        whole = time_of(forecast, pending, calibration, cores)
        print(f"about {duration(whole)} with {cores} cores of this machine, from a short calibration")
    if device:
        hours = sum(device.hours(forecast.needs(job).flops, precision(forecast, job)) for job in pending)
        print(f"about {hours:.3g} GPU-hours on {gpu}, at 40 % of its peak")
    for text in remarks(forecast, pending, device.memory if device else None, gpu):
        print(text)


def precision(forecast: Forecast, job: Job) -> str:
    return str(forecast.arguments(job).get("precision", "float32"))


def line(forecast: Forecast, jobs: Sequence[Job], calibration: Calibration | None) -> str:
    """Sums of operations and bytes, the largest process, and the time of all jobs one after the other."""
    found = [forecast.needs(job) for job in jobs]
    flops, stored = sum(n.flops for n in found), sum(n.stored for n in found)
    memory = max((n.memory for n in found), default=0)
    alone = sum(calibration.seconds(forecast, job) for job in jobs) if calibration else None
    shown = duration(alone) if alone is not None else "-"
    return f"{flops / 1e12:>10.4g} {size(stored):>9} {size(memory):>9} {shown:>9}"


def time_of(forecast: Forecast, pending: Sequence[Job], calibration: Calibration, cores: int) -> float:
    """Seconds of a run with so many cores, the engine and the outputs included."""
    used = {job.name: threads_of(forecast, job, cores) for job in pending}
    seconds = {job.name: calibration.seconds(forecast, job) + ENGINE_JOB for job in pending}
    return ENGINE_START + makespan(pending, seconds, used, cores) + OUTPUTS * calibration.start_analysis


def threads_of(forecast: Forecast, job: Job, cores: int) -> int:
    """Cores that a job's rule takes in a local run."""
    if job.stage == "models":
        return job.arguments["threads"] * job.arguments["processes"]
    passes = forecast.plan.config["passes"]["threads"]
    return {"coefficients": passes, "replay": passes, "layers": passes, "execution": cores}.get(job.stage, 1)


def remarks(forecast: Forecast, pending: Sequence[Job], memory: float | None, gpu: str | None) -> list[str]:
    """What was assumed, and what does not fit."""
    found = list(forecast.plan.absent)
    for name in dict.fromkeys(filter(None, map(forecast.model_of, pending))):
        if assumed := forecast.model(name).assumed:
            label = forecast.plan.jobs[name].title
            found.append(f"{label}: {assumed} not known before it is loaded, assumed")
    if forecast.text.corpus == 0:
        found.append("the corpus is not here: its size, and what training tokens take, is not counted")
    if memory is not None:
        large = [job for job in pending if forecast.needs(job).memory > memory]
        if large:
            found.append(
                f"{len(large)} jobs need more memory than one {gpu} has ({size(memory)}), "
                f"the first is {large[0].stage} of {large[0].title}"
            )
    return found


def size(bytes_: float) -> str:
    return f"{bytes_ / 1e9:.1f} GB" if bytes_ >= 1e9 else f"{bytes_ / MB:.0f} MB"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    units = {"min": 60, "h": 3600, "days": 86_400}
    unit = next((unit for unit, length in units.items() if seconds < 100 * length), "days")
    value = seconds / units[unit]
    return f"{value:.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"
