"""In: objects and what to put in the place of parts of them. Out: a context in which it is there.

Callables are replaced on the instance, never the object itself, since blocks read their
controllers' attributes; whatever stood on the instance before is put back, also after an error.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import Tensor


@contextmanager
def swapped(replacements: Iterable[tuple[Any, str, Callable[[Callable], Callable]]]) -> Iterator[None]:
    """Replace each owner.name by wrap(original) while the context is open.

    The replacement keeps the original's signature: callers such as transformers look at it.
    """
    before: list[tuple[Any, str, Any]] = []
    try:
        for owner, name, wrap in replacements:
            original = getattr(owner, name)
            # accelerate and others also keep a forward on the instance: theirs is put back
            before.append((owner, name, vars(owner).get(name)))
            setattr(owner, name, wraps(original)(wrap(original)))
        yield
    finally:
        for owner, name, own in reversed(before):
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)


@contextmanager
def poisoned(tensors: Iterable[Tensor]) -> Iterator[None]:
    """Every value NaN while the context is open; integers, which have none, their largest number.

    Whatever is computed from them, by whichever way, then shows. The tensors keep their identity, and
    their values are put back untouched, since they are never written to.
    """
    # another playback that is open counts operations on these tensors; looking at them is none
    with torch._C.DisableTorchFunction():
        before = [(tensor, tensor.data) for tensor in tensors]
        for tensor, values in before:
            if values.is_floating_point() or values.is_complex():
                tensor.data = torch.full_like(values, torch.nan)
            elif values.dtype != torch.bool:
                tensor.data = torch.full_like(values, torch.iinfo(values.dtype).max)
    try:
        yield
    finally:
        with torch._C.DisableTorchFunction():
            for tensor, values in before:
                tensor.data = values
