"""In: names of the interventions at hand. Out: effects of factors, as weights on their losses.

Every effect here is a weighted sum of losses, so its estimate and interval come from the same
bootstrap as a penalty's. Effects are given where every loss they need is at hand.
"""

from collections.abc import Iterable, Mapping
from itertools import permutations

from fca.interventions.lattice import KEPT, REASSIGNED, Factors, nested, subsets

Weights = dict[str, float]


def term(factors: Iterable[str]) -> str:
    return ":".join(sorted(factors))


def interactions(available: Iterable[str]) -> dict[str, Weights]:
    """What breaking several alignments costs beyond its parts, nats per token.

    Of {input, token}: P(input+token) - P(input) - P(token), with P the penalty; of more factors,
    by inclusion and exclusion (the Moebius inverse of the penalties). 0 where losses add up.
    """
    by_factors = measured(available, REASSIGNED)
    found = {}
    for broken in by_factors:
        if len(broken) > 1 and all(s in by_factors for s in subsets(sorted(broken))):
            found[term(broken)] = {
                by_factors[s]: float((-1) ** len(broken - s)) for s in subsets(sorted(broken))
            }
    return found


def factorial(available: Iterable[str]) -> dict[str, Weights]:
    """Factorial effects (Yates): of the largest set of factors with every subset at hand.

    A main effect is the loss with the factor broken minus with it intact, averaged over the states
    of the others; an interaction is half the difference of an effect between the states of one more.
    """
    by_factors = measured(available, REASSIGNED)
    complete = [b for b in by_factors if all(s in by_factors for s in subsets(sorted(b)))]
    largest = max(complete, key=len, default=frozenset())
    scale = 2.0 ** (1 - len(largest))
    return {
        term(effect): {by_factors[s]: scale * (-1) ** len(effect - s) for s in subsets(sorted(largest))}
        for effect in subsets(sorted(largest))
        if effect
    }


def shapley(available: Iterable[str]) -> dict[str, Weights]:
    """Each factor's Shapley share of the Correct-to-GlobalMean gap, nats per token.

    The factors are kept one after the other, from `global_mean` to `correct`; a share is how much
    keeping the factor lowers the loss, averaged over the orders. The shares add up to the gap.

    ASSUME: channels are nested in layers, so only orders that keep the layer first count (Faigle
    and Kern 1992). Without the `layer_only` profiles, layer and channel count as one factor.
    """
    by_factors = measured(available, KEPT)
    fine: dict[str, Factors] = {f: frozenset({f}) for f in ("input", "layer", "channel", "token")}
    coarse: dict[str, Factors] = {
        "input": frozenset({"input"}),
        "layer": frozenset({"layer", "channel"}),
        "token": frozenset({"token"}),
    }
    for players in (fine, coarse):
        orders = [order for order in permutations(players) if sensible(order, players)]
        needed = {s for order in orders for s in path(order, players)}
        if needed <= by_factors.keys():
            return shapley_weights(orders, players, by_factors)
    return {}


def shapley_weights(
    orders: list[tuple[str, ...]], players: Mapping[str, Factors], by_factors: Mapping[Factors, str]
) -> dict[str, Weights]:
    found: dict[str, Weights] = {player: {} for player in players}
    for order in orders:
        steps = path(order, players)
        for player, before, now in zip(order, steps, steps[1:]):
            for state, sign in ((before, 1.0), (now, -1.0)):
                weights = found[player]
                weights[by_factors[state]] = weights.get(by_factors[state], 0.0) + sign / len(orders)
    return found


def path(order: Iterable[str], players: Mapping[str, Factors]) -> list[Factors]:
    """The factors kept after each step of an order, from none to all."""
    kept: list[Factors] = [frozenset()]
    for player in order:
        kept.append(kept[-1] | players[player])
    return kept


def sensible(order: Iterable[str], players: Mapping[str, Factors]) -> bool:
    return all(nested(s) for s in path(order, players))


def measured(available: Iterable[str], lattice: Mapping[str, Factors]) -> dict[Factors, str]:
    """The part of a lattice that was replayed: factors -> name."""
    return {lattice[name]: name for name in available if name in lattice}
