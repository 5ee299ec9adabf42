"""In: factors broken or kept, or a config's list of interventions. Out: canonical names.

A coefficient is addressed by input, layer, channel within layer, and token. A reassignment breaks
the alignment of some of these factors; a static profile keeps some and averages over the rest.
Every subset that makes sense has one name, and everything else knows interventions by name.
"""

from collections.abc import Iterable, Mapping
from itertools import chain, combinations
from typing import Any

from fca.errors import FcaError

Factors = frozenset[str]
#: factor -> the reassignment that breaks it alone, in the order in which names are joined
BREAKS = {"input": "cross_input", "token": "token_shuffle", "layer": "layer_shuffle"}
KEEPS = ("input", "layer", "channel", "token")


def subsets(factors: Iterable[str]) -> list[Factors]:
    """All subsets, the smaller first, in the order of the factors."""
    items = list(factors)
    return [frozenset(s) for s in chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))]


def reassignment(broken: Iterable[str], keep_first: int = 0) -> str:
    """The name of the reassignment that breaks these factors: {input, token} is
    `cross_input+token_shuffle`. keep_first: tokens at the start that a token shuffle leaves alone.
    """
    factors = known(broken, BREAKS, "reassign.break")
    if keep_first and "token" not in factors:
        raise FcaError("interventions: reassign.keep_first leaves tokens out of a shuffle, so break token")
    parts = [name for factor, name in BREAKS.items() if factor in factors]
    if keep_first:
        parts = [after(p, keep_first) if p == BREAKS["token"] else p for p in parts]
    return "+".join(parts) or "correct"


def after(shuffle: str, keep_first: int) -> str:
    """The name of a token shuffle that leaves the first tokens alone."""
    return f"{shuffle}_after_{keep_first}" if keep_first else shuffle


def static(kept: Iterable[str]) -> str:
    """The name of the static profile, or oracle, that keeps these factors.

    `layer_mean` keeps layer and channel, `layer_only_mean` the layer without its channels. All
    four factors kept are the coefficients themselves: `correct`.
    """
    factors = known(kept, KEEPS, "static.keep")
    if not nested(factors):
        raise FcaError(
            "interventions: static.keep holds channel without layer, but channels lie within layers"
        )
    if factors == frozenset(KEEPS):
        return "correct"
    parts = ["input"] if "input" in factors else []
    if "layer" in factors:
        parts.append("layer" if "channel" in factors else "layer_only")
    if "token" in factors:
        parts.append("token")
    return "_".join(parts or ["global"]) + "_mean"


def known(factors: Iterable[str], possible: Iterable[str], where: str) -> Factors:
    """The factors as a set. Raises FcaError for an unknown one."""
    found = frozenset(factors)
    if unknown := found - frozenset(possible):
        raise FcaError(f"interventions: {where} is {sorted(unknown)[0]!r}; possible: {', '.join(possible)}")
    return found


def nested(factors: Factors) -> bool:
    """Whether a set of factors makes sense: a channel is told apart only within its layer."""
    return "channel" not in factors or "layer" in factors


#: name -> the factors broken, of every reassignment in the lattice, `correct` first
REASSIGNED: dict[str, Factors] = {reassignment(s): s for s in subsets(BREAKS)}
#: name -> the factors kept, of every profile in the lattice, `correct` last
KEPT: dict[str, Factors] = {static(s): s for s in subsets(KEEPS) if nested(s)}


def full() -> list[str]:
    """Every intervention of both lattices, `correct` first."""
    return list(dict.fromkeys([*REASSIGNED, *KEPT]))


def name(entry: str | Mapping[str, Any]) -> str:
    """An entry of the config's `interventions` by name; entries in factors are given theirs."""
    if isinstance(entry, str):
        return entry
    if "reassign" in entry:
        return reassignment(entry["reassign"]["break"], entry["reassign"].get("keep_first", 0))
    return static(entry["static"]["keep"])


def names(entries: Iterable[str | Mapping[str, Any]], lattice: str = "listed") -> list[str]:
    """All interventions of an audit, each once; `correct` is first, the others are compared with it."""
    whole = full() if lattice == "full" else []
    return list(dict.fromkeys(["correct", *map(name, entries), *whole]))
