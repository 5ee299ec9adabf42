# The plan: every job of the audit and its key, and what rules need to know of it.
from fca.config import SCHEMA, check
from fca.errors import FcaError
from fca.forecast.jobs import Forecast
from fca.index import write_plan
from fca.output.names import FIGURES
from fca.plan import Plan

try:
    check(config, SCHEMA)
    PLAN = Plan(config)
    PLANNED = str(write_plan(PLAN))
except FcaError as error:
    raise WorkflowError(str(error)) from None

for line in PLAN.absent:
    logger.warning(line)

FORECAST = Forecast(PLAN)
STORE = str(PLAN.store.root)
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
    """The artifacts that a stage reads under an argument; a content key never goes stale."""

    def manifests(wildcards):
        names = PLAN.job(stage, wildcards.key).reads.get(argument, ())
        return [ancient(PLAN.manifest(name)) for name in names]

    return manifests


def options(stage):
    """What stands behind `fca STAGE` in the job's command."""
    return lambda wildcards: PLAN.options(PLAN.job(stage, wildcards.key))


def label(stage):
    """What a person calls the job."""
    return lambda wildcards: PLAN.job(stage, wildcards.key).label


def memory(stage):
    """Memory that a job asks for; more on every retry. See fca.forecast.needs."""

    def mem_mb(wildcards, attempt):
        return FORECAST.needs_of(stage, wildcards).mem_mb(attempt)

    return mem_mb


def minutes(stage):
    """The time limit that a job asks for; more on every retry."""

    def runtime(wildcards, attempt, threads):
        return FORECAST.minutes(stage, wildcards, threads, attempt)

    return runtime


def cores(wildcards):
    """CPU cores of a training: threads of all its processes."""
    training = PLAN.job("models", wildcards.key).arguments
    return training["processes"] * training["threads"]


def launcher(wildcards):
    """What a training is started with; torchrun looks for a free port itself."""
    processes = PLAN.job("models", wildcards.key).arguments["processes"]
    several = f"torchrun --standalone --nproc-per-node {processes} -m fca"
    return several if processes > 1 else "fca"
