"""In: a group's tables. Out: the three answers, each with the numbers behind it.

Do the coefficients vary, does the frozen model depend on their assignment, is less executed?
Thresholds come from the config's `conventions`; they word the verdicts and change no number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fca.report.wording import nats, percent
from fca.results.numbers import Number, across, effect, free_layers, row_of, terms
from fca.results.results import Model, number


def grouped_shares(table: pd.DataFrame) -> dict[str, float]:
    """Share of variance that is static (layer, channel), by position (token), or with the input:
    of that, `between` inputs, the same for all tokens of one; the rest is input by token.
    """
    grouped = {"static": 0.0, "position": 0.0, "input": 0.0, "between": 0.0}
    for term, share in zip(table["term"], table["share"], strict=True):
        factors = set(term.split(":"))
        group = "input" if "input" in factors else "position" if "token" in factors else "static"
        grouped[group] += float(share)
        if "input" in factors and "token" not in factors:
            grouped["between"] += float(share)
    return grouped


def variation(
    tables: Sequence[pd.DataFrame], models: Sequence[Model], conventions: Mapping
) -> dict[str, Any]:
    by_model = [grouped_shares(table) for table in tables]
    found = {f"share_{k}": across([{"value": s[k]} for s in by_model]) for k in by_model[0]}
    deviation = across([{"value": m.json("variance", "summary.json")["deviation"]} for m in models])
    threshold = conventions["variation"]
    if found["share_input"]["value"] >= threshold:
        verdict = "they vary with the input or its tokens"
    elif found["share_position"]["value"] >= threshold:
        verdict = "they vary with the position only"
    else:
        verdict = "they are static"
    numbers = ", ".join(
        f"{100 * found[f'share_{k}']['value']:.1f} % {word}"
        for k, word in (
            ("input", "with the input or its tokens"),
            ("between", "of that between inputs"),
            ("position", "with the position"),
            ("static", "by layer or channel alone"),
        )
    )
    return {
        "verdict": verdict,
        "statement": f"{verdict}: of their variance {numbers}",
        "deviation": deviation,
        **found,
    }


def dependence(models: Sequence[Model], conventions: Mapping[str, float]) -> dict[str, Any]:
    found = {
        "gap": across([effect(m, "global_mean", "penalty") for m in models]),
        "cross_input_penalty": across([effect(m, "cross_input", "penalty") for m in models]),
        "token_shuffle_penalty": across([effect(m, "token_shuffle", "penalty") for m in models]),
        "layer_mean_retention": across([effect(m, "layer_mean", "retention") for m in models]),
    }
    on_input = above(found["cross_input_penalty"], conventions["dependence"])
    on_token = above(found["token_shuffle_penalty"], conventions["dependence"])
    enough = above(found["layer_mean_retention"], conventions["static_enough"])
    words = {
        True: "depends on which {} they are assigned to",
        False: "does not depend on which {} they are assigned to",
        None: "undecided whether it depends on which {} they are assigned to",
    }
    static = {
        True: "a static layerwise profile does as well",
        False: "a static layerwise profile falls short",
        None: "whether a static layerwise profile does as well is undecided",
    }
    parts = (
        (words[on_input].format("input"), "another input's", nats(found["cross_input_penalty"])),
        (words[on_token].format("token"), "tokens shuffled", nats(found["token_shuffle_penalty"])),
        (static[enough], "retention", percent(found["layer_mean_retention"])),
    )
    return {
        "verdict": "; ".join(answer for answer, _, _ in parts),
        "statement": "; ".join(f"{answer} ({what} {value})" for answer, what, value in parts),
        "depends_on_input": on_input,
        "depends_on_token": on_token,
        "static_enough": enough,
        **found,
        "shapley": {
            term: across([row_of(m, "factors", {"what": "shapley", "term": term}, "share") for m in models])
            for term in terms(models[0])
        },
        "kl": {
            name: across([row_of(m, "divergence", {"intervention": name}, "kl") for m in models])
            for name in ("cross_input", "layer_mean")
        },
        "free_layers": free_layers(models, conventions["free"]),
    }


def execution(tables: Sequence[pd.DataFrame], conventions: Mapping[str, float]) -> dict[str, Any]:
    rows = [table.set_index("mode") for table in tables]
    live = [row.loc["live"] for row in rows]
    dense = [row.loc["dense"] if "dense" in row.index else None for row in rows]

    def ratio(column: str) -> Number:
        ratios = [
            {"value": None if d is None else float(x[column]) / float(d[column])}
            for x, d in zip(live, dense, strict=True)
        ]
        return across(ratios)

    blocks = across([{"value": executed(x, "blocks")} for x in live])
    experts = across([{"value": executed(x, "experts")} for x in live])
    flops = ratio("flops_per_token")
    latency = across([{"value": number(x["ratio_to_dense"])} for x in live])
    threshold = conventions["execution"]
    shares = [found["value"] for found in (blocks, experts, flops) if found["value"] is not None]
    less = min(shares) <= 1 - threshold
    verdict = "less is executed" if less else "everything is executed"
    parts = [f"{100 * blocks['value']:.1f} % of its blocks per token"]
    if experts["value"] is not None:
        parts.append(f"{100 * experts['value']:.1f} % of its experts")
    if flops["value"] is None or latency["value"] is None:
        parts.append("no dense model of the same sizes to compare with")
    else:
        parts.append(f"{100 * flops['value']:.1f} % of the dense model's FLOPs")
        parts.append(f"{100 * latency['value']:.0f} % of its time")
    for what, found in (("blocks", blocks), ("experts", experts)):
        static = across([{"value": executed(row.loc["static"], what)} for row in rows])["value"]
        if static is not None and abs(static - found["value"]) >= threshold:
            parts.append(f"but {100 * static:.1f} % of its {what} under its static profile")
    return {
        "verdict": verdict,
        "statement": f"{verdict}: {', '.join(parts)}",
        "executes_less": less,
        "blocks_executed_share": blocks,
        "experts_executed_share": experts,
        "flops_ratio_to_dense": flops,
        "latency_ratio_to_dense": latency,
        "parameters_ratio_to_dense": ratio("parameters"),
    }


def executed(row: pd.Series, what: str) -> float | None:
    """Blocks or experts executed per token over those present; None where there are none."""
    present, done = (number(row[f"{what}_{k}"]) for k in ("present", "executed_per_token"))
    return None if present is None or done is None else done / present


def above(estimate: Number, threshold: float) -> bool | None:
    """Whether a number lies above a threshold: only as sure as its whole interval; else None."""
    low, high = estimate["low"], estimate["high"]
    if low is None or high is None:
        return None
    if low >= threshold:
        return True
    if high < threshold:
        return False
    return None
