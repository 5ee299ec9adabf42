"""In: a kind of model and its sizes. Out: how long a pass and a training step of it take here."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from fca.frozen.loss import run, token_nll
from fca.frozen.passes import record
from fca.machine.device import best
from fca.machine.timing import seconds_of
from fca.models.kinds import module

LONG = 1.0  # seconds


def seconds(
    kind: str,
    architecture: Mapping[str, Any],
    batch_size: int,
    trained: bool,
    device: str = "cpu",
    threads: int = 1,
) -> float:
    """Median seconds of one recording pass over one batch, or of one optimiser step, of three; of
    one where that already takes long.

    device: as in a config, `auto` is the accelerator that torch finds.
    The weights are random; time does not depend on their values.
    """
    device = best() if device == "auto" else device
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = module(kind).build(dict(architecture)).to(device)
    sites = module(kind).sites(model)
    shape = (batch_size, architecture["length"])
    tokens = np.random.default_rng(0).integers(0, architecture["vocabulary"], shape)
    go: Callable[[], Any]
    if trained:
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
        ids = torch.from_numpy(tokens).to(device)

        def go() -> None:
            loss = token_nll(run(model, ids), ids).mean() + getattr(model, "auxiliary", 0.0)
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
    else:
        model.eval().requires_grad_(False)

        def go() -> None:
            list(record(model, sites, tokens, batch_size))

    first = seconds_of(go, device)  # allocates
    return float(np.median([seconds_of(go, device) for _ in range(1 if first > LONG else 3)]))
