"""In: two sets of coefficients. Out: losses of replays that take one set at some layers only.

Layers below the first one that differs are computed once and reused, exactly (see `prefix`).
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fca.controllers.forms import Form
from fca.controllers.sites import Site
from fca.frozen.loss import measured, run
from fca.frozen.passes import CoefficientsOf, batches
from fca.frozen.playback import Playback
from fca.frozen.prefix import RememberedReplay
from fca.frozen.prepare import tensor_of
from fca.machine.counting import blocks_of

ORDERS = ("alone", "from_bottom", "from_top")


@dataclass(frozen=True)
class Mapped:
    """One batch's loss [batch, token - 1], float32 nats, under one draw and variant; None: the base.

    controller_runs: counted so far.
    """

    inputs: slice
    draw: int | None
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
    base: CoefficientsOf,
    others: Sequence[CoefficientsOf],
    masks: Sequence[np.ndarray],
    batch_size: int,
) -> Iterator[Mapped]:
    """Replay base, then, for every draw in `others`, each variant that takes it where its mask
    [coefficient] is True. The base is computed once for all draws.

    tokens [input, token]; base and others give [batch, token, coefficient]. Raises ProofError
    where a controller ran or a recorded call was not played back.
    """
    ends = np.cumsum([sum(form.channels for form in calls) for calls in forms])
    owner = np.searchsorted(ends, np.arange(ends[-1]), side="right")  # coefficient -> site

    with (
        Playback(model, sites, forms) as playback,
        RememberedReplay(model, playback, blocks) as remembered,
    ):

        def losses(coefficients: Tensor, mode: AbstractContextManager) -> np.ndarray:
            playback.load(coefficients)
            with mode:
                logits = run(model, ids)
            playback.finish()
            return measured(logits, ids).cpu().numpy()

        for inputs in batches(len(tokens), batch_size):
            ids = tensor_of(tokens[inputs], model)
            common = tensor_on(ids.device, base(inputs))
            nll = losses(common, remembered.remember())
            yield Mapped(inputs, None, None, nll, playback.controller_runs)
            for draw, other in enumerate(others):
                changed = tensor_on(ids.device, other(inputs))
                for variant, mask in enumerate(masks):
                    mixed = torch.where(torch.from_numpy(mask).to(ids.device), changed, common)
                    nll = losses(mixed, remembered.reuse(np.unique(owner[mask]).tolist()))
                    yield Mapped(inputs, draw, variant, nll, playback.controller_runs)


def tensor_on(device: torch.device, coefficients: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(coefficients, dtype=np.float32)).to(device)
