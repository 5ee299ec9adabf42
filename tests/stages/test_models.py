"""Training by several processes, after a kill and in bfloat16: the curve of an undisturbed one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file
from tiny import write_corpus

import fca.stages.models as stage
from fca.errors import FcaError
from fca.planning.config import check, load
from fca.planning.declaration import declaration
from fca.planning.make import make
from fca.planning.plan import Plan
from fca.planning.recipe import recipe
from fca.store.artifacts import Store
from fca.store.external import Digests

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TORCHRUN = [str(Path(sys.executable).parent / "torchrun"), "--standalone", "--nproc-per-node", "2"]
TRAINING = {
    "architecture": {"layers": 3, "width": 16, "heads": 2},
    "steps": 12,
    "batch_size": 4,
    "learning_rate": 0.01,
    "warmup": 2,
    "weight_decay": 0.1,
    "precision": "float32",
    "seed": 3,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    return folder


def prepared(corpus: Path, store: Store):
    """The inputs' artifact in a store."""
    return make(
        "inputs",
        {
            "corpus": "text", "source": str(corpus / "*.txt"), "field": "text", "tokenizer": "bytes", "length": 24,
            "calibration": 8, "evaluation": 10, "split": {"training": 0.5, "calibration": 0.25, "evaluation": 0.25},
            "seed": 0,
        },
        store,
        None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def inputs(corpus, tmp_path_factory) -> Path:
    return prepared(corpus, Store(tmp_path_factory.mktemp("inputs"))).path


def train(into: Path, inputs: Path, **changes) -> pd.DataFrame:
    """The curve of a training in this process."""
    into.mkdir(exist_ok=True)
    resume = changes.pop("resume", into / "resume")
    stage.models(into, inputs=inputs, resume=resume, **{"kind": "featuregate"} | TRAINING | changes)
    return pd.read_csv(into / "training.csv")


# ------------------------------------------------------------ several processes

JOBS = {
    "featuregate": {"kind": "featuregate"},
    "featuregate in parts": {"kind": "featuregate", "micro_batch_size": 1},
    "bfloat16": {"kind": "featuregate", "precision": "bfloat16"},
    "mixture_of_depths": {"kind": "mixture_of_depths"},
    # more experts than tokens of a process: most take no part in a step
    "moe": {"kind": "moe", "architecture": TRAINING["architecture"] | {"experts": 64}},
    "early_exit": {"kind": "early_exit"},
    # without the auxiliary loss, which is of each process' own share of the batch
    "moe alone": {"kind": "moe", "architecture": TRAINING["architecture"] | {"experts": 64, "balance": 0.0}},
    "early_exit alone": {"kind": "early_exit", "architecture": TRAINING["architecture"] | {"cost": 0.0}},
}
EACH = """
import json, sys
from pathlib import Path
from fca.stages.models import models
for name, job in json.loads(sys.argv[1]).items():
    folder = Path(sys.argv[2]) / name
    folder.mkdir(exist_ok=True)
    models(folder, inputs=Path(sys.argv[3]), resume=folder / "resume", processes=2, **job)
"""


@pytest.fixture(scope="module")
def together(inputs, tmp_path_factory) -> Path:
    """Every job, trained by two processes."""
    folder = tmp_path_factory.mktemp("together")
    (folder / "each.py").write_text(EACH)
    jobs = json.dumps({name: TRAINING | job for name, job in JOBS.items()})
    command = [*TORCHRUN, str(folder / "each.py"), jobs, str(folder), str(inputs)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", JOBS)
def test_two_processes_train_as_one(together, inputs, tmp_path, name):
    one, two = train(tmp_path / "one", inputs, **JOBS[name]), pd.read_csv(together / name / "training.csv")
    # approximate where rounding is coarse and where the auxiliary loss is not a mean over tokens
    approximate = name in ("bfloat16", "moe", "early_exit")
    np.testing.assert_allclose(two["loss"], one["loss"], rtol=1e-2 if approximate else 1e-5)
    assert two.drop(columns="loss").equals(one.drop(columns="loss"))
    if not approximate:
        mine, theirs = (load_file(f / "model.safetensors") for f in (tmp_path / "one", together / name))
        for weight, value in mine.items():
            np.testing.assert_allclose(theirs[weight], value, atol=1e-4)


def test_each_process_reads_its_own_sequences_only():
    class Read:
        def __init__(self):
            self.starts = []

        def __len__(self):
            return 1000

        def __getitem__(self, where):
            self.starts.append(where.start)
            return np.arange(where.start, where.stop)

    whole, parts = Read(), [Read(), Read()]
    batch = stage.draw_batch(whole, 6, 8, 0, 5)
    for rank, tokens in enumerate(parts):
        assert (stage.draw_batch(tokens, 6, 8, 0, 5, slice(rank, None, 2)) == batch[rank::2]).all()
        assert tokens.starts == whole.starts[rank::2]


def test_a_batch_that_does_not_split_is_refused(inputs, tmp_path):
    expected = "training.batch_size is 4, which training.processes, 3, .* can be 1, 2, 4"
    with pytest.raises(FcaError, match=expected):
        train(tmp_path / "a", inputs, processes=3)
    config = load(ROOT / "config.yaml")
    config["models"][0]["training"] = {"batch_size": 4, "processes": 3}
    with pytest.raises(FcaError, match=expected):
        check(config)


def test_a_training_that_was_not_launched_is_refused(inputs, tmp_path):
    with pytest.raises(FcaError, match="training.processes is 2, .* has 1; start it with `torchrun"):
        train(tmp_path / "a", inputs, processes=2)


# ------------------------------------------------------------ through the command line


def command(store: Store, corpus: Path, **changes) -> list[str]:
    """Words behind `fca` that train with two processes."""
    arguments = {"kind": "featuregate", **TRAINING, **changes, "processes": 2}
    arguments["inputs"] = prepared(corpus, store).name
    key = recipe("models", arguments, Digests(store.root / "memory")).key
    words = ["models", "--store", str(store.root), "--key", key]
    for argument in declaration("models").arguments:
        if (value := arguments.get(argument.name)) is not None:
            words += [argument.option, json.dumps(value) if isinstance(value, dict) else str(value)]
    return words


def start(words: list[str], *script: str) -> subprocess.Popen:
    return subprocess.Popen(
        [*TORCHRUN, *(script or ("-m", "fca")), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def wait_for(condition, run: subprocess.Popen) -> None:
    """Raises where it does not come true in a minute, with what the run said if it has ended."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(run.communicate()[1] if run.poll() is not None else "waited in vain")


@pytest.mark.skipif(sys.platform != "linux", reason="process groups as on a cluster")
def test_a_killed_training_of_two_processes_goes_on_bit_for_bit(corpus, tmp_path):
    """Two trainings at once; the launcher of one is killed, its processes end, and it is run again."""
    steps = {"steps": 400, "save_every": 20}
    undisturbed, killed = (Store(tmp_path / name) for name in ("undisturbed", "killed"))
    other = start(command(undisturbed, corpus, **steps))
    run = start(command(killed, corpus, **steps))
    wait_for(lambda: list(killed.root.glob("models/.*.resume/state.pt")), run)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    # torchrun's processes are in no group of its; the folder that is filled goes with the last of them
    wait_for(lambda: [p.suffix for p in killed.unfinished()] == [".resume"], other)
    assert list(killed.root.glob("models/[!.]*")) == []
    state = next(killed.root.glob("models/.*.resume/state.pt"))
    saved = torch.load(state, weights_only=True)
    assert 0 < len(saved["curve"]) < 400
    saved["curve"][0][2] = 123.0  # to be found again: the second run goes on from this state
    torch.save(saved, state)

    again = start(command(killed, corpus, **steps))
    for process in (other, again):
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        assert len(out.splitlines()) == 1  # one of two processes publishes
    first, second = (next(store.root.glob("models/[!.]*")) for store in (undisturbed, killed))
    assert first.name == second.name
    assert killed.unfinished() == undisturbed.unfinished() == []
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    curves = [pd.read_csv(folder / "training.csv") for folder in (first, second)]
    assert curves[1]["loss"][0] == 123.0
    assert curves[0][1:].equals(curves[1][1:])


FAILING = """
import os
import fca.stages.models as stage
from fca.cli.app import main
from fca.errors import FcaError

def broken(*_):
    raise FcaError("the second process failed")

if os.environ["RANK"] == "1":
    stage.draw_batch = broken
main()
"""


def test_a_failure_of_one_process_ends_all_and_publishes_nothing(corpus, tmp_path):
    store = Store(tmp_path / "store")
    script = tmp_path / "failing.py"
    script.write_text(FAILING)
    run = start(command(store, corpus), str(script))
    out, errors = run.communicate()
    assert run.returncode != 0
    assert out == ""
    assert "fca: the second process failed\n" in errors
    assert list(store.root.glob("models/*")) == []


# ------------------------------------------------------------ going on, precision, configuration


class Killed(Exception):
    pass


def test_training_goes_on_after_a_kill_with_the_same_curve(inputs, tmp_path, monkeypatch):
    resume = tmp_path / "resume"
    whole = train(tmp_path / "whole", inputs)
    draw_batch, steps = stage.draw_batch, []

    def killed(tokens, batch_size, length, seed, step, mine):
        if step == 8:
            raise Killed
        return draw_batch(tokens, batch_size, length, seed, step, mine)

    monkeypatch.setattr(stage, "draw_batch", killed)
    with pytest.raises(Killed):
        train(tmp_path / "killed", inputs, resume=resume, save_every=5)
    assert (resume / "state.pt").is_file()

    def counted(tokens, batch_size, length, seed, step, mine):
        steps.append(step)
        return draw_batch(tokens, batch_size, length, seed, step, mine)

    monkeypatch.setattr(stage, "draw_batch", counted)
    pd.testing.assert_frame_equal(train(tmp_path / "resumed", inputs, resume=resume), whole)
    assert steps == list(range(5, 12))
    weights = [(tmp_path / run / "model.safetensors").read_bytes() for run in ("resumed", "whole")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("at_once", [1, 3])
def test_gradients_added_up_are_those_of_the_whole_batch(inputs, tmp_path, at_once):
    whole = train(tmp_path / "whole", inputs)
    parts = train(tmp_path / "parts", inputs, micro_batch_size=at_once)
    np.testing.assert_allclose(parts["loss"], whole["loss"], rtol=1e-5)
    assert (parts["loss"] != whole["loss"]).any()  # rounding shows that it was another computation


def test_a_kill_while_saving_keeps_the_state_before(inputs, tmp_path, monkeypatch):
    save = torch.save

    def killed(saved, file):
        if len(saved["curve"]) == 10:
            file.write(b"half a state")
            raise Killed
        save(saved, file)

    whole = train(tmp_path / "whole", inputs)
    monkeypatch.setattr(torch, "save", killed)
    with pytest.raises(Killed):
        train(tmp_path / "run", inputs, save_every=5)
    assert len(torch.load(tmp_path / "run" / "resume" / "state.pt", weights_only=True)["curve"]) == 5
    pd.testing.assert_frame_equal(train(tmp_path / "run", inputs), whole)


def test_bfloat16_is_another_precision_and_nearly_the_same_curve(inputs, tmp_path):
    one = train(tmp_path / "float32", inputs)["loss"]
    other = train(tmp_path / "bfloat16", inputs, precision="bfloat16")["loss"]
    assert (other != one).any()
    np.testing.assert_allclose(other, one, rtol=2e-2)
    weights = load_file(tmp_path / "bfloat16" / "model.safetensors")
    assert {w.dtype for w in weights.values()} == {np.dtype("float32")}


def test_a_diverging_training_stops(inputs, tmp_path):
    with pytest.raises(FcaError, match="the loss became nan"):
        train(tmp_path, inputs, kind="dense", learning_rate=1e30)


def test_processes_and_intervals_are_no_part_of_the_key(tmp_path):
    config = load(ROOT / "config.yaml") | {"store": str(tmp_path)}
    plan = Plan(config)
    how = {"processes": 4, "save_every": 7, "threads": 2}
    other = Plan(config | {"training": config["training"] | how})
    assert {job.name for job in other.jobs} == {job.name for job in plan.jobs}
    assert how.items() <= other.jobs.of("models")[0].arguments.items()


def test_the_rule_launches_as_many_processes_as_a_model_asks_for(tmp_path):
    overlay = tmp_path / "overlay.json"
    models = [
        {"name": "one", "kind": "dense"},
        {"name": "two", "kind": "rezero", "training": {"processes": 2, "threads": 3}},
    ]
    overlay.write_text(json.dumps({"analysis": "t", "store": str(tmp_path / "store"), "models": models}))
    done = subprocess.run(
        [TORCHRUN[0].replace("torchrun", "snakemake"), "--snakefile", str(ROOT / "Snakefile"), "models", "--cores", "8",
         "--dry-run", "--directory", str(tmp_path), "--configfile", str(ROOT / "config.yaml"), str(overlay)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    shown = done.stdout + done.stderr
    assert "Shell command: fca models --store" in shown
    assert "Shell command: torchrun --standalone --nproc-per-node 2 -m fca models --store" in shown
    assert "--threads 3 --processes 2" in shown
