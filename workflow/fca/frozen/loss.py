"""In: a model and tokens. Out: logits, and the loss of every predicted token."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fca.errors import FcaError


def run(model: nn.Module, tokens: Tensor) -> Tensor:
    """Logits [batch, token, vocabulary] of a model that returns them bare or among others."""
    return logits_of(model(tokens))


def logits_of(output: Any) -> Tensor:
    """The logits in what a model returns: a tensor, `.logits`, `["logits"]`, or the one tensor of a
    tuple that has a batch and more axes, as in (logits, loss), (loss, logits) and (logits, None).

    Raises FcaError where that leaves none or several.
    """
    if isinstance(output, Mapping):
        output = output.get("logits", tuple(output.values()))
    output = getattr(output, "logits", output)
    if isinstance(output, Tensor):
        return output
    parts = output if isinstance(output, tuple | list) else ()
    found = [part for part in parts if isinstance(part, Tensor) and part.ndim > 1]
    if len(found) != 1:
        shown = ", ".join(shape_of(part) for part in parts) or type(output).__name__
        raise FcaError(
            f"the model returns ({shown}), in which {len(found)} tensors could be the logits; return them "
            "alone, as `.logits`, or under the key 'logits'"
        )
    return found[0]


def shape_of(part: Any) -> str:
    return f"tensor {tuple(part.shape)}" if isinstance(part, Tensor) else type(part).__name__


def measured(logits: Tensor, inputs: Tensor) -> Tensor:
    """What a pass is judged by: the loss of each predicted token, or, for inputs that are no
    token ids (images), the log-probabilities [batch, class], whose divergence from live is.
    """
    if inputs.is_floating_point():
        return logits.float().log_softmax(-1)
    return token_nll(logits, inputs)


def token_nll(logits: Tensor, tokens: Tensor, rows: int = 8192) -> Tensor:
    """Loss of each predicted token, float32 nats, [batch, token - 1].

    Computed in slices of `rows` tokens, since float32 logits of a large vocabulary would be
    the largest tensor of the whole pass.
    """
    flat, targets = logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
    parts = [
        F.cross_entropy(flat[a : a + rows].float(), targets[a : a + rows], reduction="none")
        for a in range(0, len(flat), rows)
    ]
    return torch.cat(parts).view(tokens.shape[0], tokens.shape[1] - 1)
