"""In: a loaded model and its inputs. Out: how many of them fit into one batch."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil
import torch
from torch import nn

from fca.networks.capture import Capture
from fca.networks.cost import peak_bytes
from fca.networks.device import device_of
from fca.networks.loss import measured, run
from fca.networks.passes import extent, tensor_of
from fca.networks.sites import Site

LARGEST = 32  # inputs: more bring no speed on any device and only cost memory
# ASSUME: of what is free, so much for tensors; the rest for copies of the coefficients on the way
# to the store, and for allocators that keep what was freed.
SHARE = 0.5


def fitting(model: nn.Module, sites: Sequence[Site], inputs: np.ndarray, free: float | None = None) -> int:
    """The largest power of two of inputs, up to 32, whose recording pass fits into memory.

    inputs [input, ...]; free: bytes, by default what the device has. One and two inputs are run
    and the tensors alive at once are counted; what a further one adds is the difference. At least
    1, even where that will not fit: the pass itself will say so.
    """
    free = free_bytes(device_of(model)) if free is None else free
    one, two = (counted(model, sites, inputs[:n]) for n in (1, 2))
    each = max(two - one, 1) if len(inputs) > 1 else one
    most = 1 + (SHARE * free - one) / each
    return 2 ** int(np.log2(np.clip(most, 1, LARGEST)))


@torch.inference_mode()
def counted(model: nn.Module, sites: Sequence[Site], inputs: np.ndarray) -> int:
    """Peak bytes of the tensors of a recording pass, losses and coefficients included."""
    ids = tensor_of(inputs, model)

    def recorded() -> torch.Tensor:
        with Capture(model, sites) as capture:
            logits = run(model, ids)
            held = capture.take(*extent(ids))[0] if sites else logits
        return measured(logits, ids) + 0 * held.sum()

    return peak_bytes(recorded)


def free_bytes(device: torch.device) -> float:
    """Free memory of an accelerator; of a CPU, what the system or a SLURM job has left."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    available = psutil.virtual_memory().available
    if given := os.environ.get("SLURM_MEM_PER_NODE"):
        used = psutil.Process().memory_info().rss
        available = min(available, int(given) * 2**20 - used)
    try:  # a container's or a job's own limit
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        if limit != "max":
            available = min(available, int(limit) - int(used))
    except OSError:
        pass
    return available
