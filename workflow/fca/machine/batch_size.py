"""In: the bytes that a pass takes. Out: how many inputs fit into one batch."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import torch

LARGEST = 32  # inputs: more bring no speed on any device and only cost memory
# ASSUME: of what is free, so much for tensors; the rest for copies of the coefficients on the way
# to the store, and for allocators that keep what was freed.
FOR_TENSORS = 0.5


def fitting(bytes_of: Callable[[int], int], inputs: int, free: float) -> int:
    """The largest power of two of inputs, up to 32, whose pass fits into memory.

    bytes_of(n): peak bytes of a pass over n inputs; asked for one and two, since what a further
    input adds is the difference. inputs: how many there are. free: bytes. At least 1, even where
    that will not fit: the pass itself will say so.
    """
    first = bytes_of(1)
    further = max(bytes_of(2) - first, 1) if inputs > 1 else first
    most = 1 + (FOR_TENSORS * free - first) / further
    return 2 ** int(np.log2(np.clip(most, 1, LARGEST)))


def free_bytes(device: torch.device) -> float:
    """Free memory of an accelerator; of a CPU, what the system, a container or a SLURM job has left."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    limits = [psutil.virtual_memory().available]
    if allocated := os.environ.get("SLURM_MEM_PER_NODE"):  # in MiB
        limits.append(int(allocated) * 2**20 - psutil.Process().memory_info().rss)
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
    except OSError:
        return min(limits)
    if limit != "max":
        limits.append(int(limit) - used)
    return min(limits)
