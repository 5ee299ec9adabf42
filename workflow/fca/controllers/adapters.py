"""In: modules that consume their coefficients themselves. Out: their forward in two parts."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


class HyperConnection:
    """DeepSeek-V4's manifold-constrained hyper-connection.

    The module returns (post, comb, collapsed). `collapsed` is content, the streams summed with
    weights `pre` that never leave the module; playing it back would transplant content. The
    coefficients are therefore pre [stream], post [stream] and comb [stream, stream].
    """

    @staticmethod
    def labels(module: Any) -> dict[str, tuple[str, ...]]:
        n = int(module.hc_mult)
        return {"part": ("pre",) * n + ("post",) * n + ("comb",) * n * n}

    @staticmethod
    def coefficients(module: Any, output: tuple, streams: Tensor) -> Tensor:
        """[batch, token, 2 n + n n]; pre as the module computes it, post and comb as returned."""
        n = int(module.hc_mult)
        mixed = F.linear(module.input_norm(streams.flatten(2).float()), module.fn.float())[..., :n]
        pre = torch.sigmoid(mixed * module.scale[0] + module.base[:n]) + module.hc_eps
        post, comb, _ = output
        return torch.cat([pre, post, comb.flatten(2)], dim=-1)

    @staticmethod
    def forward(module: Any, coefficients: Tensor, streams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n = int(module.hc_mult)
        pre, post, comb = coefficients.split([n, n, n * n], dim=-1)
        collapsed = (pre.unsqueeze(-1) * streams).sum(dim=2).to(streams.dtype)
        return post, comb.unflatten(-1, (n, n)), collapsed
