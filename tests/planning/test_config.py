"""The config: what is wrong is named, with what is possible; overlays plan what they say."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest

from fca.errors import FcaError
from fca.planning.config import check, load
from fca.planning.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
ANALYSES = sorted((ROOT / "analyses").glob("*.yaml"))


@pytest.fixture
def config(tmp_path):
    return load(ROOT / "config.yaml") | {"store": str(tmp_path / "store")}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["interventons"], [], "unknown key 'interventons'; did you mean 'interventions'?"),
        (["inputs", "lenght"], 3, "unknown key 'inputs.lenght'; did you mean 'length'?"),
        (["models", 0, "featurs"], "x", "unknown key 'models.0.featurs'; did you mean 'features'?"),
        (
            ["models", 0, "kind"],
            "densest",
            "models.0.kind is 'densest'; possible: dense, rezero, featuregate, mudd",
        ),
        (["inputs", "length"], "long", "inputs.length: 'long' is not of type 'integer'"),
        (["repeats"], 0, "repeats: 0 is less than the minimum of 1"),
        (["training", "precision"], "float8", "training.precision is 'float8'; possible: float32, bfloat16"),
        (
            ["models", 0, "features"],
            "residual",
            "models.0.kind is 'dense', but 'features' is an option of kind 'featuregate'",
        ),
        (["interventions", 0], {"static": {"keep": ["head"]}}, "interventions.0.static.keep.0 is 'head'"),
        (["lattice"], "all", "lattice is 'all'; possible: listed, full"),
        (["analysis"], "../elsewhere", "analysis: '../elsewhere' does not match"),
    ],
)
def test_mistakes_are_explained(config, path, value, message):
    changed = copy.deepcopy(config)
    inner = changed
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    with pytest.raises(FcaError) as error:
        check(changed)
    assert message in str(error.value)


def test_missing_keys_are_named(config):
    del config["inputs"]["tokenizer"]
    with pytest.raises(FcaError, match=r"missing key 'inputs.tokenizer'"):
        check(config)


def test_same_names_are_refused(config):
    config["models"][1]["name"] = "dense"
    with pytest.raises(FcaError, match="models.name must differ"):
        Plan(config)


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda p: p.stem)
def test_ready_analyses_are_valid(analysis):
    check(load(ROOT / "config.yaml", analysis))


def test_paper_has_the_papers_sizes(tmp_path):
    """Parameters counted from the shapes: 76M and 504M with GPT-2's vocabulary."""
    import torch

    from fca.architectures import featuregate

    config = load(ROOT / "config.yaml", ROOT / "analyses/paper.yaml")
    plan = Plan(config | {"store": str(tmp_path)})
    jobs = [j for j in plan.jobs if j.stage == "models" and j.arguments["kind"] == "featuregate"]
    counts = {}
    for job in jobs:
        with torch.device("meta"):
            model = featuregate.build({"vocabulary": 50257, "length": 1024, **job.arguments["architecture"]})
        size = sum(p.numel() for p in model.parameters()) // 1_000_000
        counts[size] = counts.get(size, 0) + 1
    assert counts == {76: 7, 504: 3}


def keys(plan):
    return {job.title + " " + job.stage: job.key for job in plan.jobs}


def names(plan):
    return {job.name for job in plan.jobs}


def test_names_do_not_count_and_seeds_do(config):
    plan = Plan(config)
    assert keys(Plan(config | {"analysis": "other"})) == keys(plan)
    other = Plan(config | {"seed": 1})
    same = names(plan) & names(other)
    assert {j.split("/")[0] for j in same} == {"inputs", "models", "coefficients", "profiles"}


def test_a_new_intervention_changes_its_own_replays_and_effects_only(config):
    plan = Plan(config)
    more = Plan(config | {"interventions": [*config["interventions"], "token_shuffle_by_layer"]})
    new = [job for job in more.jobs if job.name not in names(plan)]
    assert {(j.stage, j.arguments.get("intervention")) for j in new} == {
        ("replay", "token_shuffle_by_layer"),
        ("effects", None),
    }
    gone = [job.stage for job in plan.jobs if job.name not in names(more)]
    assert set(gone) == {"effects"}


def test_lattice_full_adds_every_subset_as_a_job_of_its_own(config):
    def replayed(changes):
        plan = Plan(config | changes)
        return {j.arguments["intervention"]: j.name for j in plan.jobs if j.stage == "replay"}

    by_factors = [{"reassign": {"break": ["input"]}}, {"static": {"keep": ["layer", "channel"]}}]
    few = replayed({"interventions": by_factors})
    assert set(few) == {"correct", "cross_input", "layer_mean"}
    assert few == replayed({"interventions": ["cross_input", "layer_mean"]})
    assert len(replayed({"interventions": [], "lattice": "full"})) == 8 + 12 - 1


EDITS = {
    "stages/coefficients.py": {
        "coefficients",
        "profiles",
        "replay",
        "layers",
        "variance",
        "effects",
        "execution",
    },
    "stages/variance.py": {"variance"},
    "statistics/effects.py": {"effects"},
    "frozen/playback.py": {
        "coefficients",
        "profiles",
        "replay",
        "layers",
        "variance",
        "effects",
        "execution",
    },
    "frozen/prefix.py": {"layers", "effects"},
    "architectures/dense.py": {
        "models",
        "coefficients",
        "profiles",
        "replay",
        "layers",
        "variance",
        "effects",
        "execution",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("module", EDITS)
@pytest.mark.parametrize("edit", ["# a comment\n", "_EDITED = 1\n"], ids=["comment", "line"])
def test_edits_change_the_keys_of_their_stage_and_below(tmp_path, module, edit):
    import shutil

    copied = shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    code = (
        "from pathlib import Path; from fca.planning.config import load; from fca.planning.plan import Plan; import fca;"
        f"assert fca.__file__.startswith({str(tmp_path)!r});"
        f"config = load(Path({str(ROOT / 'config.yaml')!r})) | {{'store': {str(tmp_path / 'store')!r}}};"
        "print('\\n'.join(job.name for job in Plan(config).jobs))"
    )

    def plan():
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": str(copied), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        return set(done.stdout.split())

    before = plan()
    file = copied / "fca" / module
    file.write_text(file.read_text() + edit)
    changed = {name.split("/")[0] for name in plan() - before}
    assert changed == (set() if edit.startswith("#") else EDITS[module])
