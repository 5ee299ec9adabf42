"""In: an analysis' tables, claims and figures. Out: report.html, one self-contained page."""

import base64
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import yaml

from fca.figures import FIGURES
from fca.figures.draw import figure
from fca.report.details import details, value
from fca.report.summary import PROOFS, claims_of
from fca.report.wording import interval
from fca.results.results import Results, number
from fca.results.sample_size import resolution, sample_sizes, warnings


def write_report(index: Path) -> None:
    results = Results(index)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fca", "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {f.__name__: f for f in (share, signed, cell, plain, hundred, chance)}
    page = environment.get_template("report.html").render(
        results=results,
        claims=claims_of(results),
        proofs=PROOFS,
        figures=figures(results),
        effects=effects(results),
        details=details(results),
        power=power(results),
        recipe=yaml.safe_dump(results.config, sort_keys=False, allow_unicode=True),
        artifacts=artifacts(results),
        machine=machine(results),
    )
    (results.folder / "report.html").write_text(page, encoding="utf-8")


def figures(results: Results) -> list[dict[str, str]]:
    """Name, caption and the SVG as a data URI, so that the page needs no other file."""
    found = []
    for name in FIGURES:
        svg = (results.folder / "figures" / f"{name}.svg").read_bytes()
        drawn = figure(name)
        uri = "data:image/svg+xml;base64," + base64.b64encode(svg).decode()
        found.append(
            {
                "name": name,
                "title": drawn.title,
                "caption": drawn.caption,
                "uri": uri,
            }
        )
    return found


def effects(results: Results) -> dict[str, pd.DataFrame]:
    """Each model's effects, with the divergence of its predictions."""
    table = results.table("effects")
    compared = results.table("effects", "divergence")
    keys = ["model", "kind", "seed", "intervention"]
    if "kl" in compared and not table.empty:
        table = table.merge(compared, on=keys, how="left")
    else:
        table = table.assign(**dict.fromkeys(("kl", "kl_low", "kl_high", "top1_agreement"), "undefined"))
    return {f"{m}, seed {s}": rows for (m, s), rows in table.groupby(["model", "seed"], sort=False)}


def power(results: Results) -> dict[str, list[str]]:
    """How many inputs a telling retention interval needs, and what the audit at hand cannot tell."""
    width = resolution(results)
    found = list(sample_sizes(results, width))
    return {"lines": [size.sentence(width) for size in found], "warnings": warnings(results, found)}


def artifacts(results: Results) -> list[dict[str, Any]]:
    """One row per artifact behind a model: what a reader needs to find it in the store."""
    rows = []
    for model in results.models:
        recorded = [(split, one) for split, shards in model.recordings.items() for one in shards]
        for what, artifact in [*recorded, *model.artifacts.items()]:
            manifest = artifact.manifest()
            rows.append(
                {
                    "model": f"{model.name}, seed {model.seed}",
                    "what": what,
                    "name": artifact.name,
                    "seconds": manifest["seconds"],
                }
            )
    return rows


def machine(results: Results) -> dict[str, Any]:
    """Where the first model was trained or imported, and with which versions."""
    manifest = results.models[0].recordings["evaluation"][0].manifest()
    return {**manifest["machine"], "versions": manifest["versions"], "made": manifest["made"]}


def share(estimate: dict[str, Any]) -> str:
    """A share as a percentage with its interval."""
    if estimate["value"] is None:
        return "undefined"
    return f"{100 * estimate['value']:.1f} %{interval(estimate, 100, '.1f')}"


def signed(estimate: dict[str, Any]) -> str:
    """Nats per token with their interval."""
    if estimate["value"] is None:
        return "undefined"
    return f"{estimate['value']:+.4f}{interval(estimate, 1, '+.4f')}"


def cell(row: pd.Series, quantity: str, scale: float = 1.0, form: str = ".4f") -> str:
    """A table's value with its interval."""
    return value(row, quantity, scale, form)


def plain(value: Any, form: str) -> str:
    """A table's number without an interval."""
    known = number(value)
    return "undefined" if known is None else f"{known:{form}}"


def chance(value: Any) -> str:
    """A p value."""
    known = number(value)
    return "undefined" if known is None else "<0.001" if known < 0.001 else f"{known:.3f}"


def hundred(value: Any) -> str:
    """A share without an interval, in percent."""
    known = number(value)
    return "undefined" if known is None else f"{100 * known:.1f}"
