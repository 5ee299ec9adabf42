"""In: results. Out: per group of models the three answers, the proofs, and what is needed to be surer."""

from collections.abc import Mapping, Sequence
from typing import Any

from fca.models.kinds import KINDS
from fca.report.answers import dependence, execution, variation
from fca.results.numbers import across, effect
from fca.results.results import Model, Results
from fca.results.sample_size import resolution, sample_sizes


def claims(results: Results) -> dict[str, Any]:
    """Everything claims.json holds."""
    conventions = results.config["conventions"]
    groups = {
        name: audited(models, conventions) if models[0].audited else uncontrolled(models)
        for name, models in results.groups.items()
    }
    width = resolution(results)
    for found in sample_sizes(results, width):
        groups[found.model.name].setdefault("power", {})[str(found.model.seed)] = {
            "inputs": found.inputs,
            "width": found.power.width if found.power else None,
            "tells": not found.too_wide(width),
            "inputs_needed": found.needed,
            "for_width": width,
        }
    return {"analysis": results.index["analysis"], "conventions": conventions, "models": groups}


def uncontrolled(models: Sequence[Model]) -> dict[str, Any]:
    """A model without controllers: nothing to audit, its loss for comparison."""
    none = dict.fromkeys(("verdict", "statement"), KINDS[models[0].kind].static)
    return {
        "kind": models[0].kind,
        "seeds": [m.seed for m in models],
        "live_nll": across([{"value": m.live_nll} for m in models]),
        "variation": none,
        "dependence": none,
        "execution": none,
        "proofs": {},
    }


def audited(models: Sequence[Model], conventions: Mapping[str, float]) -> dict[str, Any]:
    """A group of models with controllers: its three answers and proofs."""
    return {
        "kind": models[0].kind,
        "seeds": [m.seed for m in models],
        "live_nll": across([effect(m, "correct", "nll") for m in models]),
        "variation": variation([m.table("variance") for m in models], models, conventions),
        "dependence": dependence(models, conventions),
        "execution": execution([m.table("execution") for m in models], conventions),
        "proofs": {str(m.seed): m.json("effects", "proofs.json") for m in models},
    }
