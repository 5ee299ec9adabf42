"""In: a model and coefficients to replay. Out: how far the replayed predictions are from the live ones.

Two models can have equal loss and differ in function; so whole next-token distributions are compared.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fca.controllers.forms import Form
from fca.controllers.sites import Site
from fca.frozen.loss import run
from fca.frozen.passes import CoefficientsOf, batches
from fca.frozen.playback import Playback
from fca.frozen.prepare import tensor_of

MEASURES = ("kl", "total_variation", "top1_agreement")


@torch.no_grad()
def divergences(
    model: nn.Module,
    sites: Sequence[Site],
    forms: Sequence[Sequence[Form]],
    tokens: np.ndarray,
    coefficients: CoefficientsOf,
    batch_size: int,
    inputs: int,
) -> dict[str, np.ndarray]:
    """Per input, means over positions of each measure, [min(inputs, len(tokens))] float64.

    kl: KL(live || replayed) in nats; total_variation in 0 .. 1; top1_agreement: share of positions
    with the same most likely token. ASSUME: the first inputs stand for all, since inputs are in
    random order. The batches are the recording's, live and replay one after the
    other, so that one batch's logits are held at a time. Raises ProofError where a controller ran
    during the replay.
    """
    count = min(inputs, len(tokens))
    found = {name: np.zeros(count) for name in MEASURES}
    for batch in batches(len(tokens), batch_size):
        if batch.start >= count:
            break
        ids = tensor_of(tokens[batch], model)
        values = np.ascontiguousarray(coefficients(batch), dtype=np.float32)
        live = run(model, ids)
        with Playback(model, sites, forms) as playback:
            playback.load(torch.from_numpy(values).to(ids.device))
            replayed = run(model, ids)
            playback.finish()
        for i in range(min(batch.stop, count) - batch.start):
            for name, value in compare(live[i], replayed[i]).items():
                found[name][batch.start + i] = value
    return found


def compare(live: Tensor, replayed: Tensor) -> dict[str, float]:
    """Means over positions of the measures between logits [token, vocabulary]."""
    p, q = F.log_softmax(live.float(), dim=-1), F.log_softmax(replayed.float(), dim=-1)
    difference = p.exp() - q.exp()
    # Rounding can leave the KL of equal distributions slightly below 0.
    kl = (p.exp() * (p - q)).sum(dim=-1).clamp_min(0.0)
    same = live.argmax(dim=-1) == replayed.argmax(dim=-1)
    per_position = (kl, difference.abs().sum(dim=-1) / 2, same)
    return {name: float(x.double().mean()) for name, x in zip(MEASURES, per_position, strict=True)}
