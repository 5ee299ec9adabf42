"""In: two sets of coefficients. Out: losses of replays that take one set at some layers only.

Layers below the first one that differs are computed once and reused, exactly (see `prefix`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from fca.networks.cost import blocks_of
from fca.networks.loss import measured, run
from fca.networks.passes import batches, tensor_of
from fca.networks.playback import Playback
from fca.networks.prefix import Memory
from fca.networks.sites import Form, Site

Source = Callable[[slice], np.ndarray]
ORDERS = ("alone", "from_bottom", "from_top")


@dataclass(frozen=True)
class Mapped:
    """One batch's loss [batch, token - 1], float32 nats, under one variant; None: the base.

    controller_runs: counted so far.
    """

    inputs: slice
    variant: int | None
    nll: np.ndarray
    controller_runs: int


def reusable(model: nn.Module) -> list[str]:
    """Paths of the modules whose output a layer map takes over: the blocks, and what a model names
    in `between_blocks`.
    """
    between: Any = getattr(model, "between_blocks", ())
    return [*blocks_of(model), *between]


def changes(layers: np.ndarray, order: str) -> tuple[bool, list[np.ndarray]]:
    """Which coefficients differ from the base, one mask [coefficient] per layer, from the bottom.

    alone: an intervention on that layer only; from_top: on it and all above; from_bottom: on it
    and all below. Also says whether the base is the intervention itself: from the bottom the
    intervened layers are the common part, and what differs are the correct ones above.
    """
    names = np.unique(layers)
    if order == "from_bottom":
        return True, [layers > layer for layer in names]
    return False, [layers >= layer if order == "from_top" else layers == layer for layer in names]


@torch.no_grad()  # not inference_mode: its tensors do not count edits in place, which must be noticed
def variants(
    model: nn.Module,
    sites: Sequence[Site],
    forms: Sequence[Sequence[Form]],
    blocks: Sequence[str],
    tokens: np.ndarray,
    base: Source,
    other: Source,
    masks: Sequence[np.ndarray],
    batch_size: int,
) -> Iterator[Mapped]:
    """Replay base, then every variant that takes `other` where its mask [coefficient] is True.

    tokens [input, token]; base and other give [batch, token, coefficient]. Raises ProofError
    where a controller ran or a recorded call was not played back.
    """
    ends = np.cumsum([sum(form.channels for form in calls) for calls in forms])
    owner = np.searchsorted(ends, np.arange(ends[-1]), side="right")  # coefficient -> site

    with Playback(model, sites, forms) as playback, Memory(model, playback, blocks) as memory:
        for inputs in batches(len(tokens), batch_size):
            ids = tensor_of(tokens[inputs], model)
            common, changed = (
                torch.from_numpy(np.ascontiguousarray(source(inputs), dtype=np.float32)).to(ids.device)
                for source in (base, other)
            )
            playback.load(common)
            with memory.remember():
                logits = run(model, ids)
            playback.finish()
            yield Mapped(inputs, None, measured(logits, ids).cpu().numpy(), playback.controller_runs)
            for k, mask in enumerate(masks):
                playback.load(torch.where(torch.from_numpy(mask).to(ids.device), changed, common))
                with memory.reuse(np.unique(owner[mask]).tolist()):
                    logits = run(model, ids)
                playback.finish()
                yield Mapped(inputs, k, measured(logits, ids).cpu().numpy(), playback.controller_runs)
