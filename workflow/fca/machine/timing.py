"""In: work to do. Out: how long it takes on a device."""

import time
from collections.abc import Callable
from typing import Any

import torch


def seconds_of(work: Callable[[], Any], device: torch.device | str) -> float:
    """Seconds of work(). An accelerator is waited for, so that the clock measures work and not its queue."""
    device = torch.device(device)
    wait_for(device)
    started = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - started


def wait_for(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
