"""In: what torch finds. Out: the device to run on, and a model put there."""

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

ROOM = 0.8  # ASSUME: of an accelerator's free memory, for weights; the rest is for a pass


def best() -> str:
    """The accelerator that torch finds, else cpu."""
    found = torch.accelerator.current_accelerator()
    return "cpu" if found is None else found.type


def place(model: nn.Module, device: str, memory: Mapping[int | str, int] | None = None) -> nn.Module:
    """Put a model on a device; one that is larger than an accelerator is spread over all of them.

    memory: bytes for weights by accelerator (0, 1, ...), "cpu" and "disk", in the order in which
    they are filled; by default what the accelerators have, and the CPU for what is left over.
    What is not on an accelerator is brought there for each pass, by accelerate's device map.
    """
    if memory is None:
        memory = accelerators(device)
        if not memory or size_of(model) <= memory[0]:
            return model.to(device)
    from accelerate import dispatch_model, infer_auto_device_map

    blocks = sorted({type(m).__name__ for m in repeated(model)})
    limits = {place: int(size) for place, size in memory.items()}
    placed = infer_auto_device_map(model, max_memory=limits, no_split_module_classes=blocks)
    folder = Path(tempfile.mkdtemp(prefix="fca-offload-")) if "disk" in placed.values() else None
    if folder is not None:  # weights of this model only: they go when it does
        weakref.finalize(model, shutil.rmtree, folder, ignore_errors=True)
    main = next((where for where in placed.values() if where not in ("cpu", "disk")), "cpu")
    return dispatch_model(model, placed, main_device=main, offload_dir=folder, force_hooks=True)


def accelerators(device: str) -> dict[int | str, int]:
    """Bytes for weights on each accelerator, and on the CPU; nothing where one was named or none is."""
    if device != "cuda":
        return {}
    found: dict[int | str, int] = {
        i: int(ROOM * torch.cuda.mem_get_info(i)[0]) for i in range(torch.cuda.device_count())
    }
    return found | {"cpu": 2**62}


def repeated(model: nn.Module) -> list[nn.Module]:
    """Members of module lists: residual connections run through them, so they stay in one place."""
    return [child for m in model.modules() if isinstance(m, nn.ModuleList) for child in m]


def size_of(model: nn.Module) -> int:
    """Bytes of parameters and buffers."""
    tensors = [*model.parameters(), *model.buffers()]
    return sum(t.numel() * t.element_size() for t in tensors)


def device_of(model: nn.Module) -> torch.device:
    """Where a model's inputs go."""
    placed = getattr(model, "hf_device_map", None)
    if placed:
        main = next((where for where in placed.values() if where not in ("cpu", "disk")), "cpu")
        return torch.device(main)
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def beside(value: Tensor, args: tuple, kwargs: Mapping) -> Tensor:
    """A tensor on the device of what a module is called with."""
    given = next((x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)), value)
    return value.to(given.device)
