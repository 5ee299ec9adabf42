"""In: a model, tokens, a way to run it. Out: what is executed, counted rather than assumed."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

Run = Callable[[], Any]


def blocks_of(model: nn.Module) -> list[str]:
    """Paths of a model's blocks: what it names in `block_paths`, else the children of the module
    list that holds most parameters (the outermost of nested ones); the model itself without one.
    """
    own: Any = getattr(model, "block_paths", None)
    if own is not None:
        return list(own)
    lists = [(path, m) for path, m in model.named_modules() if isinstance(m, nn.ModuleList) and len(m)]
    if not lists:
        return [""]
    path, largest = max(lists, key=lambda found: sum(p.numel() for p in found[1].parameters()))
    return [f"{path}.{i}" for i in range(len(largest))]


@contextmanager
def counted_blocks(model: nn.Module) -> Iterator[dict[str, int]]:
    """Count, per block, the tokens that it returns: a skipped block or token does not count."""
    counts = dict.fromkeys(blocks_of(model), 0)

    def hook_of(path: str):
        def hook(_module, _args, output):
            hidden = output if isinstance(output, Tensor) else output[0]
            counts[path] += hidden.numel() // hidden.shape[-1]

        return hook

    handles = [model.get_submodule(path).register_forward_hook(hook_of(path)) for path in counts]
    try:
        yield counts
    finally:
        for handle in handles:
            handle.remove()


@dataclass(frozen=True)
class Flops:
    """Floating-point operations of one run, in total and inside each module by its path."""

    total: int
    by_module: dict[str, int]


def flops(run: Run) -> Flops:
    """Floating-point operations of matrix products in one run, as torch counts them.

    ASSUME: attention is taken apart into matrix products over all pairs of tokens, since fused
    kernels are not counted on every device; the causal half that one may save is included.
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    by_module = {
        path.partition(".")[2]: sum(counts.values()) for path, counts in counter.get_flop_counts().items()
    }
    return Flops(counter.get_total_flops(), by_module)


def experts_of(model: nn.Module) -> dict[str, tuple[int, int]]:
    """Modules that hold experts: path -> (number of experts, matrix weights of one).

    Experts lie in stacked parameters [expert, ., .] or in a list of equal modules.
    """
    found = {}
    for path, module in model.named_modules():
        if path.split(".")[-1] != "experts":
            continue
        stacked = [p for p in module.parameters(recurse=False) if p.ndim == 3]
        lists = [m for m in module.children() if isinstance(m, nn.ModuleList)]
        inner = list(lists[0]) if lists else list(module.children())
        if stacked:
            found[path] = (len(stacked[0]), sum(p.numel() for p in stacked) // len(stacked[0]))
        elif len(inner) > 1:
            weights = sum(p.numel() for p in inner[0].parameters() if p.ndim == 2)
            found[path] = (len(inner), weights)
    return found


def experts_executed(model: nn.Module, counted: Flops, tokens: int) -> tuple[float, float] | None:
    """Experts present and executed per token, mean over the layers; None without experts.

    Executed is measured: the operations inside the experts over those of one expert on one row.
    It does not ask what the router meant, so an expert that runs with weight 0 counts.
    """
    layers = experts_of(model)
    if not layers:
        return None
    present = sum(count for count, _ in layers.values()) / len(layers)
    rows = [counted.by_module.get(path, 0) / (2 * weights) for path, (_, weights) in layers.items()]
    return present, sum(rows) / len(rows) / tokens


class LiveBytes(TorchDispatchMode):
    """Bytes of tensors that operations made and that are still alive; the peak of it.

    The same on every run and device, unlike a process's resident memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self.known: dict[int, int] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(value, Tensor):
                self._hold(value.untyped_storage())
        return result

    def _hold(self, storage: torch.UntypedStorage) -> None:
        address = storage._cdata
        if address in self.known:
            return
        self.known[address] = storage.nbytes()
        self.live += storage.nbytes()
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._release, address)

    def _release(self, address: int) -> None:
        self.live -= self.known.pop(address, 0)


def peak_bytes(run: Run) -> int:
    """Largest sum of bytes of the tensors made in a run that were alive at once."""
    with LiveBytes() as memory:
        run()
    return memory.peak
