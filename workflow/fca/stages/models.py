"""In: training tokens and a kind of model. Out: a checkpoint and its loss curve.

Writes config.json, model.safetensors and training.csv (step, tokens, loss in nats, learning_rate).
"""

import json
import math
import os
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs
from torch import nn

from fca.errors import FcaError
from fca.frozen.loss import run, token_nll
from fca.machine.processes import check_split, join
from fca.models.kinds import KINDS, module
from fca.models.weights import save_checkpoint
from fca.progress import progress
from fca.stages.arguments import Count, Device, Inputs, Kind, Processes, Resume, Threads


def models(
    into: Path,
    *,
    inputs: Inputs,
    kind: Kind,
    architecture: dict,
    steps: int,
    batch_size: int,
    learning_rate: float,
    warmup: int,
    weight_decay: float,
    precision: str,
    seed: int,
    resume: Resume,
    device: Device = "cpu",
    threads: Threads = 1,
    processes: Processes = 1,
    save_every: Count = 200,
    micro_batch_size: Count = 0,
) -> None:
    """Train one model from a seed; a killed training goes on where it was last saved.

    architecture: the kind's options without vocabulary and length, which are the inputs'.
    batch_size is the global batch in sequences of the inputs' length. Several processes, one per
    GPU, started by torchrun, share it and give the same curve up to rounding; threads are those of
    one process. micro_batch_size: sequences that a process computes at a time, their gradients
    added up, where its share does not fit into memory; 0 for all at once. The state is saved every
    save_every steps; another number of processes can go on from it. Raises FcaError where the batch
    cannot be shared evenly or the loss is not finite.

    ASSUME: each process adds the auxiliary loss of its own share of the batch, as is usual for
    balanced experts (Fedus et al. 2022). Where that is not a mean over tokens (moe, early_exit),
    several processes train towards a slightly different aim than one.
    ASSUME: rounding, which training amplifies over many steps, is no reason for another key, whether
    it comes from the device, the threads or the processes; a model is audited as it was trained.
    """
    launcher = os.getppid()
    check_split(batch_size, processes)
    join(processes, device)
    unused = DistributedDataParallelKwargs(find_unused_parameters=KINDS[kind].skips)
    accelerator = Accelerator(cpu=device == "cpu", mixed_precision="no", kwargs_handlers=[unused])
    torch.set_num_threads(threads)  # after the group is joined, which sets it too
    torch.manual_seed(seed)
    facts = json.loads((inputs / "inputs.json").read_text())
    length = facts["length"]
    architecture = {"vocabulary": facts["vocabulary"], "length": length, **architecture}
    tokens = np.load(inputs / "training.npy", mmap_mode="r")
    if len(tokens) < length + 1:
        raise FcaError(f"training needs {length + 1} tokens, the inputs hold {len(tokens)}")
    model = module(kind).build(architecture)
    optimiser = optimiser_of(model, learning_rate, weight_decay)
    model, optimiser = accelerator.prepare(model, optimiser)
    state = resume / "state.pt"
    curve: list[list[float]] = []
    if state.is_file():
        saved = torch.load(state, map_location="cpu", weights_only=True)
        accelerator.unwrap_model(model).load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        curve = saved["curve"]
    mine = slice(accelerator.process_index, None, accelerator.num_processes)
    label = f"train {kind} seed {seed}"
    ahead = range(len(curve), steps)
    shown = progress(ahead, label, steps, len(curve), lambda: f"loss {curve[-1][2]:.3f}")
    for step in shown if accelerator.is_main_process else ahead:
        # torchrun's processes are in sessions of their own and would outlive it when it is killed
        if processes > 1 and os.getppid() != launcher:
            raise FcaError(f"{label}: the launcher was killed")
        rate = learning_rate * schedule(step, steps, warmup)
        for group in optimiser.param_groups:
            group["lr"] = rate
        batch = draw_batch(tokens, batch_size, length, seed, step, mine)
        loss = backward(accelerator, model, batch, precision, micro_batch_size or len(batch))
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        value = float(accelerator.reduce(loss, reduction="mean"))
        if not math.isfinite(value):
            raise FcaError(f"{label}: the loss became {value} at step {step}; lower models.learning_rate")
        curve.append([step, (step + 1) * batch_size * length, value, rate])
        if (step + 1) % save_every == 0 and step + 1 < steps and accelerator.is_main_process:
            save_state(state, accelerator.unwrap_model(model), optimiser, curve)
    if accelerator.is_main_process:
        columns = ["step", "tokens", "loss", "learning_rate"]
        pd.DataFrame(curve, columns=columns).astype({"step": int, "tokens": int}).to_csv(
            into / "training.csv", index=False
        )
        save_checkpoint(into, kind, architecture, accelerator.unwrap_model(model))


def backward(
    accelerator: Accelerator, model: nn.Module, batch: np.ndarray, precision: str, at_once: int
) -> torch.Tensor:
    """Add the gradients of a process's sequences [batch, length]; return their mean loss.

    at_once: sequences of a pass; with fewer than all, gradients are those of the whole up to
    rounding, but for the auxiliary loss, which is then the mean of the parts' own.
    """
    mean = torch.zeros((), device=accelerator.device)
    for start in range(0, len(batch), at_once):
        part = batch[start : start + at_once]
        share = len(part) / len(batch)
        ids = torch.from_numpy(part).to(accelerator.device)
        last = start + at_once >= len(batch)  # processes exchange gradients once per step
        with nullcontext() if last else accelerator.no_sync(model):
            # not accelerate's, whose precision would be that of all trainings in a process
            with torch.autocast(accelerator.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
                logits = run(model, ids)
            loss = token_nll(logits, ids).mean()
            # what a kind of model asks for beside the loss: balanced experts, tokens that leave
            auxiliary = getattr(accelerator.unwrap_model(model), "auxiliary", 0.0)
            accelerator.backward(share * (loss + auxiliary))
        mean += share * loss.detach()
    return mean


def optimiser_of(model: nn.Module, learning_rate: float, weight_decay: float) -> torch.optim.AdamW:
    """AdamW; matrices decay, gains and biases do not.

    ASSUME: betas (0.9, 0.95) and gradient norm clipped to 1, the usual ones for language models.
    """
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95))


def schedule(step: int, steps: int, warmup: int) -> float:
    """Share of the learning rate: linear warm-up, then a cosine down to a tenth.

    ASSUME: the common schedule; the paper's text does not name one.
    """
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(steps - warmup, 1)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def draw_batch(
    tokens: np.ndarray, batch_size: int, length: int, seed: int, step: int, mine: slice = slice(None)
) -> np.ndarray:
    """Sequences [batch, length] at random places; a function of seed and step alone, so that a
    resumed training sees the same text. All models of one seed see the same batches.
    mine: the sequences of this process; no others are read.

    ASSUME: training sequences may cross from one document into the next, as language models are
    usually trained; the inputs of the audit do not.
    """
    starts = np.random.default_rng([seed, step]).integers(0, len(tokens) - length, size=batch_size)
    return np.stack([tokens[start : start + length] for start in starts[mine]]).astype(np.int64)


def save_state(state: Path, model: nn.Module, optimiser, curve: list[list[float]]) -> None:
    """Write beside and rename, so that a kill while saving keeps the state before.

    On the disk before the rename, so that a machine that is taken away keeps one of the two.
    """
    state.parent.mkdir(parents=True, exist_ok=True)
    beside = state.with_suffix(".new")
    saved = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "curve": curve}
    with beside.open("wb") as file:
        torch.save(saved, file)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(state)
