"""In: what torch finds. Out: the device to run on."""

import torch


def best() -> str:
    """The accelerator that torch finds, else cpu."""
    found = torch.accelerator.current_accelerator()
    return "cpu" if found is None else found.type
