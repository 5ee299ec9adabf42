"""What is said before a run: sizes against torch's own counts, needs, and what `fca plan` prints."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from public_models import build as build_family
from tiny import build

from fca.errors import FcaError
from fca.forecast.by_stage import STAGES, needs
from fca.forecast.jobs import Forecast
from fca.forecast.model_sizes import imported, trained
from fca.forecast.needs import SLACK, Needs, Text
from fca.forecast.page import duration, print_forecast
from fca.forecast.schedule import makespan
from fca.frozen.capture import Capture
from fca.frozen.loss import run
from fca.machine.counting import flops
from fca.models.kinds import TRAINED, module
from fca.models.weights import save_checkpoint
from fca.planning.config import load
from fca.planning.declaration import STAGES as BINDABLE
from fca.planning.jobs import Job
from fca.planning.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
SHAPE = {"vocabulary": 300, "length": 24, "layers": 4, "width": 64, "heads": 4}


@pytest.mark.parametrize("kind", TRAINED)
def test_sizes_are_what_torch_counts(kind):
    torch.manual_seed(0)
    model = module(kind).build(dict(SHAPE)).eval()
    sizes = trained(kind, SHAPE)
    assert sizes.parameters == pytest.approx(sum(p.numel() for p in model.parameters()), rel=0.02)
    ids = torch.randint(300, (2, 24))
    sites = module(kind).sites(model)
    with torch.inference_mode(), Capture(model, sites) as capture:
        counted = flops(lambda: run(model, ids)).total / ids.numel()
        emitted = capture.take(2, 24)[0].shape[-1] if sites else 0
    assert sizes.coefficients == emitted
    # tokens that leave early are not known beforehand; grouped tokens and experts are rounded
    assert counted == pytest.approx(sizes.flops(24), rel=0.4 if kind == "early_exit" else 0.03)


@pytest.mark.filterwarnings("ignore")  # the library's own deprecations
def test_sizes_of_an_imported_model_are_read_from_its_folder(tmp_path):
    model = build_family("mixtral")
    model.save_pretrained(tmp_path)
    sizes = imported("huggingface", str(tmp_path), {"family": "auto"})
    config = model.config
    assert sizes.parameters == pytest.approx(sum(p.numel() for p in model.parameters()), rel=0.1)
    assert (sizes.layers, sizes.width) == (config.num_hidden_layers, config.hidden_size)
    assert sizes.coefficients == config.num_hidden_layers * config.num_local_experts


def test_a_published_mudd_checkpoint_is_counted_from_its_config(tmp_path):
    facts = {"model_type": "muddpythia", "vocab_size": 50432, "block_size": 2048, "n_layer": 24, "n_head": 16}
    facts |= {"dim": 2048, "intermediate_size": 8192}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    sizes = imported("mudd", str(tmp_path), {})
    with torch.device("meta"):
        model = module("mudd").build(facts)
    assert sizes.parameters == pytest.approx(sum(p.numel() for p in model.parameters()), rel=0.001)


def test_what_cannot_be_read_is_said(tmp_path):
    assert imported("huggingface", "somebody/model", {}).assumed == "all sizes"
    (tmp_path / "model.gguf").write_bytes(bytes(1000))
    found = imported("huggingface", str(tmp_path), {})
    assert (found.parameters, found.assumed) == (2000, "all but parameters")


ARGUMENTS = {
    "batch_size": 8, "split": "evaluation", "precision": "float32", "repeats": 3, "intervention": "cross_input",
    "steps": 10, "rounds": 5, "replays": ("a",) * 9,
}  # fmt: skip
TEXT = Text(
    length=64, calibration=16, evaluation=32, training_tokens=1e6, cut_tokens=1e5, corpus=1e6, token_bytes=2
)


@pytest.mark.parametrize("stage", [*STAGES, "inputs"])
def test_every_stage_asks_for_more_when_it_is_sent_again(stage):
    found = needs(stage, ARGUMENTS, None if stage == "inputs" else trained("mudd", SHAPE), TEXT)
    assert found.mem_mb(2) == 2 * found.mem_mb(1) >= 800
    assert found.minutes(1, "cpu", "float32", 3) == 3 * found.minutes(1, "cpu", "float32") >= 30
    assert set(STAGES) | {"inputs"} == set(BINDABLE)


def test_time_limits_follow_the_device():
    """`auto` may find an accelerator or not; what would take days without one counts on it."""
    small, large = Needs(flops=1e13), Needs(flops=1e18, processes=4)
    assert small.minutes(2, "auto", "float32") == small.minutes(2, "cpu", "float32") == 10 + 34
    assert small.minutes(2, "cuda", "float32") == 10 + 1
    assert large.minutes(8, "cpu", "bfloat16") > 800_000
    assert large.minutes(8, "auto", "bfloat16") == large.minutes(1, "cuda", "bfloat16") == 10 + 84
    assert large.minutes(8, "auto", "float32") == 10 + 834


def test_a_replay_runs_once_per_draw_and_compared_inputs_twice_more():
    model = trained("featuregate", SHAPE)
    one = model.flops(64) * 64

    def passes(**other):
        return needs("replay", ARGUMENTS | other, model, TEXT).flops / one

    assert passes(intervention="layer_mean") == pytest.approx(32)
    assert passes() == pytest.approx(3 * 32)
    assert passes(compared=9) == pytest.approx(3 * (32 + 2 * 16))  # whole batches
    assert passes(shards=4) == pytest.approx(3 * 8)


@pytest.mark.slow
def test_a_recording_takes_the_memory_and_the_space_that_were_foreseen(tmp_path):
    """The stage runs in a process of its own, whose largest size the system tells."""
    architecture = {"vocabulary": 8000, "length": 128, "layers": 6, "width": 384, "heads": 6}
    model, inputs, into = tmp_path / "model", tmp_path / "inputs", tmp_path / "into"
    for folder in (model, inputs, into):
        folder.mkdir()
    save_checkpoint(model, "mudd", architecture, build("mudd", architecture))
    tokens = np.random.default_rng(0).integers(0, 8000, (48, 128))
    np.savez(inputs / "evaluation.npz", tokens=tokens, document=np.arange(48), offset=np.zeros(48, int))
    code = (
        "import resource; from pathlib import Path; from fca.stages.coefficients import coefficients as stage;"
        f"stage(Path({str(into)!r}), model=Path({str(model)!r}), inputs=Path({str(inputs)!r}),"
        "split='evaluation', batch_size=16, precision='float32');"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    measured = int(done.stdout.split()[-1]) * 1024
    text = Text(128, 48, 48, 0, 0, 0, 2)
    arguments = {"batch_size": 16, "split": "evaluation", "precision": "float32"}
    found = needs("coefficients", arguments, trained("mudd", architecture), text)
    assert 0.5 * found.memory < measured < SLACK * found.memory
    stored = sum(f.stat().st_size for f in into.rglob("*") if f.is_file())
    assert stored == pytest.approx(found.stored, rel=0.25)


def job(name, *reads):
    return Job(*name.split("/"), name, {}, {"upstream": reads})


def test_jobs_wait_for_what_they_read_and_for_cores():
    jobs = [job("models/a"), job("models/b"), job("replay/c", "models/a"), job("execution/d", "models/b")]
    seconds = {"models/a": 4.0, "models/b": 2.0, "replay/c": 3.0, "execution/d": 5.0}
    threads = {"models/a": 1, "models/b": 1, "replay/c": 1, "execution/d": 8}
    assert makespan(jobs, seconds, threads, cores=1) == 14
    assert makespan(jobs, seconds, threads, cores=2) == 4 + 3 + 5
    assert makespan(jobs[:3], seconds, threads, cores=2) == 4 + 3
    assert makespan(jobs[2:], seconds, threads, cores=9) == 5  # what is not listed is there


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(3, "3 s"), (89, "89 s"), (394, "6.6 min"), (6001, "1.7 h"), (1e6, "11.6 days"), (1e9, "11,574 days")],
)
def test_durations_are_for_people(seconds, shown):
    assert duration(seconds) == shown


@pytest.mark.slow
def test_fca_plan_says_what_will_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = load(ROOT / "config.yaml", ROOT / "analyses/smoke.yaml")
    plan = Plan(config)
    print_forecast(plan, cores=2, gpu="h100", measure=True)
    printed = capsys.readouterr().out
    jobs = {stage: sum(j.stage == stage for j in plan.jobs) for stage in BINDABLE}
    for line in printed.splitlines()[2:]:
        words = line.split()
        if words and jobs.get(words[0]):
            assert [int(words[1]), int(words[2])] == [jobs.pop(words[0]), 0]
    assert not any(jobs.values())
    assert "with 2 cores of this machine" in printed
    assert "GPU-hours on h100" in printed
    with pytest.raises(FcaError, match="--gpu 'abacus': known are v100"):
        print_forecast(plan, cores=2, gpu="abacus", measure=False)


def test_the_papers_models_do_not_fit_unnoticed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plan = Plan(load(ROOT / "config.yaml", ROOT / "analyses/muddpythia.yaml"))
    print_forecast(plan, cores=2, gpu="v100", measure=False)
    assert "all sizes not known before it is loaded, assumed" in capsys.readouterr().out
    (tmp_path / "checkpoints/MUDDPythia-1.4B").mkdir(parents=True)
    (tmp_path / "checkpoints/MUDDPythia-1.4B/config.json").write_text(
        json.dumps({"n_layer": 24, "dim": 2048, "vocab_size": 50304, "intermediate_size": 8192})
    )
    plan = Plan(load(ROOT / "config.yaml", ROOT / "analyses/muddpythia.yaml"))
    forecast = Forecast(plan)
    recording = next(j for j in plan.jobs if j.stage == "coefficients")
    assert 6e9 < forecast.needs(recording).memory < 14e9
    assert forecast.needs(recording).stored == pytest.approx(64 * 2048 * 1204 * 4, rel=0.3)
