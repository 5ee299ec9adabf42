# Names and keys: which artifacts the audit consists of. What a stage reads, how it is run and what it
# takes stands in its rule; `fca STAGE --help` says what each option means.
import json
import shlex

from fca.errors import FcaError
from fca.figures import FIGURES
from fca.forecast.jobs import Forecast
from fca.planning.config import check
from fca.planning.plan import Plan
from fca.planning.plan_file import write_plan

try:
    check(config)
    PLAN = Plan(config)
    PLANNED = str(write_plan(PLAN))
except FcaError as error:
    raise WorkflowError(str(error)) from None

for line in PLAN.absent:
    logger.warning(line)

FORECAST = Forecast(PLAN)
STORE = str(PLAN.store.root)
STORES = " ".join(f"--store {shlex.quote(str(root))}" for root in PLAN.store.roots)
RESULTS = str(PLAN.results)


# Snakemake tells numpy's and torch's libraries how many threads a job has; these ask elsewhere.
shell.prefix(
    "export DASK_NUM_WORKERS=$OMP_NUM_THREADS BLOSC_NTHREADS=$OMP_NUM_THREADS "
    "ZARR_THREADING__MAX_WORKERS=$OMP_NUM_THREADS; "
)


wildcard_constraints:
    key="[0-9a-f]{20}",


def artifact(stage):
    """Where a stage publishes. Never deleted before a job: another run may just have made it."""
    return update(f"{STORE}/{stage}/{{key}}/manifest.json")


def upstream(stage, argument):
    """The artifacts that a job reads under an argument; a content key never goes stale."""

    def manifests(wildcards):
        names = PLAN.job(stage, wildcards.key).reads.get(argument, ())
        return [ancient(PLAN.jobs.manifest(name)) for name in names]

    return manifests


def planned(stage, argument):
    """What the plan has for an argument of a job."""

    def value(wildcards):
        found = PLAN.job(stage, wildcards.key).arguments[argument]
        return json.dumps(found, sort_keys=True) if isinstance(found, dict) else found

    return value


def each(option, argument):
    """The option once for every file of an input: several, or none."""
    return lambda wildcards, input: " ".join(
        f"{option} {shlex.quote(str(file))}" for file in input.get(argument)
    )


def title(stage):
    """What a person calls the job."""
    return lambda wildcards: PLAN.job(stage, wildcards.key).title


def memory(stage):
    """Memory that a job asks for; more on every retry. See fca.forecast.by_stage."""

    def mem_mb(wildcards, attempt):
        return FORECAST.needs_of(stage, wildcards).mem_mb(attempt)

    return mem_mb


def minutes(stage):
    """The time limit that a job asks for; more on every retry."""

    def runtime(wildcards, attempt, threads):
        return FORECAST.minutes(stage, wildcards, threads, attempt)

    return runtime


def cores(wildcards):
    """CPU cores of a training: the threads of all its processes."""
    training = PLAN.job("models", wildcards.key).arguments
    return training["processes"] * training["threads"]


def launcher(wildcards):
    """What a training is started with; torchrun looks for a free port itself."""
    processes = PLAN.job("models", wildcards.key).arguments["processes"]
    several = f"torchrun --standalone --nproc-per-node {processes} -m fca"
    return several if processes > 1 else "fca"
