"""In: objects and the callables to put on them. Out: a context in which they are there.

Callables are replaced on the instance, never the object itself, since blocks read their
controllers' attributes; whatever stood on the instance before is put back, also after an error.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


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
