"""In: what a router emits. Out: sites whose played-back coefficients stay what a router can emit.

The coefficient of a routing site is the weight of every expert for every token, 0 where an expert
is not chosen. A transformed one, such as a mean, has weight on all experts; replayed as it is, it
would turn a sparse model into a dense mixture. It is therefore projected back: the largest k per
token are kept and, where that family's weights add up to a constant, scaled to it again. What a
router did emit passes unchanged, bit for bit. `soft=True` leaves the projection out.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fca.controllers.expert_order import order_of, with_order
from fca.controllers.sites import Site


def keep_largest(weights: Tensor, k: int, total: float | None) -> Tensor:
    """The k largest weights of the last axis, others 0; rescaled to `total` where given.

    Rows with at most k weights other than 0 are returned as they are.
    ASSUME: equal weights are kept in the order of the experts, so that a constant profile is
    replayed the same on every machine.
    """
    order = weights.sort(dim=-1, descending=True, stable=True).indices[..., :k]
    kept = torch.zeros_like(weights).scatter(-1, order, weights.gather(-1, order))
    if total is not None:
        mass = kept.sum(-1, keepdim=True)
        kept = torch.where(mass > 0, kept * (total / mass.clamp_min(1e-20)), kept)
    emitted = (weights != 0).sum(-1, keepdim=True) <= k
    return torch.where(emitted, weights, kept)


@dataclass(frozen=True)
class Projected(Site):
    """A site whose transformed coefficients are projected, unless `soft`."""

    soft: bool = False

    def coefficient(self, module, output, args, kwargs) -> Tensor:
        return output

    def playback(self, module, original, coefficient, args, kwargs):
        return self.project(coefficient)

    @abstractmethod
    def project(self, weights: Tensor) -> Tensor:
        """What the router could have emitted instead."""


@dataclass(frozen=True)
class Route(Projected):
    """The module returns the weight of every expert, [..., expert], 0 where not chosen."""

    k: int = 1
    total: float | None = None  # what a token's weights add up to, None where they vary

    def project(self, weights: Tensor) -> Tensor:
        return weights if self.soft else keep_largest(weights, self.k, self.total)


@dataclass(frozen=True)
class TupleRoute(Route):
    """The module returns (logits, weights [row, k], experts [row, k], ...), as most routers do.

    Logits and what follows the experts are not used once the experts are chosen: in playback the
    weights stand in for the logits, and the rest is None.
    """

    extra: int = 0  # entries after the third

    def coefficient(self, module, output, args, kwargs) -> Tensor:
        logits, weights, experts = output[:3]
        dense = torch.zeros(logits.shape, dtype=weights.dtype, device=weights.device)
        # added, not written: an expert can be named twice, once with weight 0
        return with_order(dense.scatter_add(-1, experts, weights), experts)

    def playback(self, module, original, coefficient, args, kwargs):
        weights = self.project(coefficient)
        experts = order_of(weights, weights.shape[-1] if self.soft else self.k)
        return (weights, weights.gather(-1, experts), experts, *[None] * self.extra)


@dataclass(frozen=True)
class SwitchRoute(Route):
    """Switch: (one-hot of the expert, its probability, logits); tokens over capacity have none."""

    def coefficient(self, module, output, args, kwargs) -> Tensor:
        one_hot, probability = output[:2]
        return one_hot * probability

    def playback(self, module, original, coefficient, args, kwargs):
        weights = self.project(coefficient)
        probability = weights.amax(-1, keepdim=True)
        one_hot = ((weights == probability) & (probability > 0)).long()
        return one_hot, probability, weights


@dataclass(frozen=True)
class ScoresRoute(Route):
    """Llama 4: (scores of every expert, logits); the experts' inputs are multiplied by them."""

    def coefficient(self, module, output, args, kwargs) -> Tensor:
        return output[0]

    def playback(self, module, original, coefficient, args, kwargs):
        weights = self.project(coefficient)
        return weights, weights


@dataclass(frozen=True)
class TokenRoute(Projected):
    """The module returns one weight per token, 0 where the token passes the block by.

    A fixed share of the tokens of every sequence is processed (mixture of depths), so a
    transformed coefficient keeps the largest of each sequence; equal ones, the first.
    """

    share: float = 1.0

    def project(self, weights: Tensor) -> Tensor:
        if self.soft:
            return weights
        k = max(round(self.share * weights.shape[1]), 1)
        return keep_largest(weights.squeeze(-1), k, None).unsqueeze(-1)


@dataclass(frozen=True)
class Decision(Projected):
    """The module returns a decision, 0 or 1; a transformed one is rounded (half counts as yes)."""

    def project(self, weights: Tensor) -> Tensor:
        return weights if self.soft else (weights >= 0.5).to(weights.dtype)


def softened(site: Site) -> Site:
    """The same site without projection: the dense mixture instead of routing."""
    return replace(site, soft=True) if isinstance(site, Projected) else site
