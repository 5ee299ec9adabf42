"""In: a replay, and variants of it that change some sites. Out: the same, without common parts anew.

The first replay is remembered block by block. A variant takes over every block that had finished
before its first changed site was called, and every part of a block that is given the very same
tensors again and calls no changed site. What is taken over is what would be computed, so results
are equal bit for bit to those of a replay from the start.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from fca.controllers.paths import submodule
from fca.errors import ProofError
from fca.frozen.playback import Playback
from fca.frozen.swap import swapped

Replacement = Callable[[Callable], Callable]  # of a module's forward


@dataclass(frozen=True)
class Call:
    """One call of a module in the first replay.

    given: the objects it was called with. before, after: how many calls of each site were still to
    come when it began and ended. versions: how often each tensor of the output had been edited in
    place.
    """

    given: tuple
    output: Any
    before: tuple[int, ...]
    after: tuple[int, ...]
    versions: tuple[int, ...]

    @property
    def edited(self) -> bool:
        """Whether any tensor of the output was changed in place since it was stored."""
        return versions_of(self.output) != self.versions

    def was_given(self, given: tuple) -> bool:
        """Whether these are the very objects that it was called with."""
        if len(given) != len(self.given):
            return False
        return all(now is then for now, then in zip(given, self.given))

    def called(self, site: int) -> bool:
        """Whether a site was called within it."""
        return self.after[site] != self.before[site]


class RememberedReplay:
    """Remembers one replay's blocks and gives them back in variants of it, while the context is open.

    blocks: paths of modules that follow each other, none inside another. Within `remember()` a
    pass is stored; within `reuse(changed)` a pass takes over what the changed sites cannot reach.
    """

    def __init__(self, model: nn.Module, playback: Playback, blocks: Sequence[str]):
        self.playback = playback
        sites = {id(module) for module in playback.modules}
        found = [(path, submodule(model, path)) for path in blocks]
        self.blocks = [(path, module) for path, module in found if id(module) not in sites]
        self.parts = [
            (f"{path}.{name}", part)
            for path, block in self.blocks
            for name, part in block.named_children()
            if id(part) not in sites
        ]
        self.mode = "off"
        self.open = ExitStack()
        self._forget()

    def __enter__(self) -> "RememberedReplay":
        parts = [(module, "forward", self._part(path, module)) for path, module in self.parts]
        blocks = [(module, "forward", self._block(path, module)) for path, module in self.blocks]
        self.open.enter_context(swapped([*parts, *blocks]))
        return self

    def __exit__(self, *exception) -> None:
        self.open.close()
        self._forget()

    def _forget(self) -> None:
        self.calls: dict[int, list[Call]] = {}
        self.tensors: set[int] = set()  # ids of what is stored, so alive
        self.total: tuple[int, ...] = ()

    def _to_come(self) -> tuple[int, ...]:
        return tuple(len(queue) for queue in self.playback.queues)

    @contextmanager
    def remember(self) -> Iterator[None]:
        """Store the pass made inside."""
        self._forget()
        self.total = self._to_come()
        with self._as("remember"):
            yield
        # A model that edits in place what it passes on changes what is stored: nothing is reused.
        if any(call.edited for calls in self.calls.values() for call in calls):
            self.calls.clear()

    @contextmanager
    def reuse(self, changed: Iterable[int]) -> Iterator[None]:
        """Make the pass inside from the stored one; changed: indices of the sites that differ."""
        self.changed = tuple(changed)
        self.seen: dict[int, int] = {}
        with self._as("reuse"):
            yield

    @contextmanager
    def _as(self, mode: str) -> Iterator[None]:
        self.mode = mode
        try:
            yield
        finally:
            self.mode = "off"

    def _block(self, path: str, module: nn.Module) -> Replacement:
        """A block is taken over where it had finished before any changed site was called."""

        def reusable(given: tuple) -> Call | None:
            place = self.seen.get(id(module), 0)
            self.seen[id(module)] = place + 1
            calls = self.calls.get(id(module), [])
            if place >= len(calls):
                return None
            call = calls[place]
            finished_before = all(call.after[site] == self.total[site] for site in self.changed)
            return call if finished_before else None

        return self._wrap(path, module, reusable, always=True)

    def _part(self, path: str, module: nn.Module) -> Replacement:
        """A part of a block is taken over where it is given the same objects and calls no changed site."""

        def reusable(given: tuple) -> Call | None:
            for call in self.calls.get(id(module), []):
                if call.was_given(given) and not any(call.called(site) for site in self.changed):
                    return call
            return None

        return self._wrap(path, module, reusable, always=False)

    def _wrap(
        self, path: str, module: nn.Module, reusable: Callable[[tuple], Call | None], always: bool
    ) -> Replacement:
        def wrap(original: Callable) -> Callable:
            def forward(*args, **kwargs):
                if self.mode == "off":
                    return original(*args, **kwargs)
                named = [item for name in sorted(kwargs) for item in (name, kwargs[name])]
                given = (*args, *named)
                if self.mode == "remember":
                    before = self._to_come()
                    output = original(*args, **kwargs)
                    self._store(module, given, output, before, always)
                    return output
                call = reusable(given)
                return original(*args, **kwargs) if call is None else self._take(path, call)

            return forward

        return wrap

    def _store(self, module: nn.Module, given: tuple, output: Any, before: tuple, always: bool) -> None:
        """Remember a call; parts only where all they are given is remembered too, since only then
        can a variant give them the very same tensors.
        """
        known = all(id(item) in self.tensors for item in given if isinstance(item, Tensor))
        if not (always or known):
            return
        call = Call(given, output, before, self._to_come(), versions_of(output))
        self.calls.setdefault(id(module), []).append(call)
        self.tensors |= {id(tensor) for tensor in tensors(output)}

    def _take(self, path: str, call: Call) -> Any:
        if call.edited:
            raise ProofError(f"layer map: the stored output of {path!r} was edited in place by a later pass")
        for queue, before, after in zip(self.playback.queues, call.before, call.after):
            del queue[: before - after]
        return call.output


def tensors(output: Any) -> list[Tensor]:
    """All tensors of a module's output, whatever holds them."""
    if isinstance(output, Tensor):
        return [output]
    if isinstance(output, dict):
        return tensors(tuple(output.values()))
    parts = output if isinstance(output, tuple | list) else ()
    return [tensor for part in parts for tensor in tensors(part)]


def versions_of(output: Any) -> tuple[int, ...]:
    """How often each tensor of an output has been edited in place."""
    return tuple(tensor._version for tensor in tensors(output))
