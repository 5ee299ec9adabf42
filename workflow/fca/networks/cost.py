"""In: a model, tokens, a way to run it. Out: what is executed, counted rather than assumed."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from fca.networks.sites import matching, submodule

Run = Callable[[], Tensor]


@contextmanager
def counted_blocks(model: nn.Module, pattern: str) -> Iterator[dict[str, int]]:
    """Count, per block, the tokens that it returns: a skipped block or token does not count."""
    counts = dict.fromkeys(matching(model, pattern), 0)

    def hook_of(path: str):
        def hook(_module, _args, output):
            hidden = output if isinstance(output, Tensor) else output[0]
            counts[path] += hidden.numel() // hidden.shape[-1]

        return hook

    handles = [submodule(model, path).register_forward_hook(hook_of(path)) for path in counts]
    try:
        yield counts
    finally:
        for handle in handles:
            handle.remove()


def flops(run: Run) -> int:
    """Floating-point operations of matrix products in one run, as torch counts them.

    Attention is taken apart into matrix products, since fused kernels are not counted on every
    device; the causal half that a fused kernel may save is therefore included.
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


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
