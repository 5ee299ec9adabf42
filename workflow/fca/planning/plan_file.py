"""In: a plan. Out: plan.json, which names every artifact of an analysis.

It says what shall be; index.json, made from it with the tables, says what is.
"""

import json
from pathlib import Path
from typing import Any

from fca.figures import FIGURES
from fca.planning.plan import Plan
from fca.store.code import ROOT, code_digest
from fca.store.keys import digest


def named(plan: Plan) -> dict[str, Any]:
    """Readable names of all artifacts, and what tables, figures and report need to know.

    code and page: digests of what they are made by, so that they are made anew when that changes.
    """
    drawing = sorted({f"fca.figures.{module}" for module in FIGURES.values()})
    return {
        "analysis": plan.config["analysis"],
        "stores": [str(root) for root in plan.store.roots],
        "inputs": plan.inputs,
        "models": plan.models,
        "config": plan.config,
        "code": code_digest("fca.report.tables", "fca.report.page", "fca.figures.draw", *drawing),
        "page": digest([(ROOT / "report" / f"report.{kind}").read_text() for kind in ("html", "css")]),
    }


def write_plan(plan: Plan) -> Path:
    """Write results/<analysis>/plan.json if it changed: what it names decides the outputs."""
    path = plan.results / "plan.json"
    text = json.dumps(named(plan), indent=1) + "\n"
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_text(text)
        beside.replace(path)
    return path
