"""In: a model and tokens. Out: logits, and the loss of every predicted token."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def run(model: nn.Module, tokens: Tensor) -> Tensor:
    """Logits [batch, token, vocabulary] of a model that returns them bare or as `.logits`."""
    output = model(tokens)
    return output if isinstance(output, Tensor) else output.logits


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
