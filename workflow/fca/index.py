"""In: a plan. Out: plan.json, which names every artifact of an analysis.

It says what shall be; index.json, made from it with the tables, says what is.
"""

import json
from pathlib import Path
from typing import Any

from fca.artifacts.code import ROOT, code_digest
from fca.artifacts.keys import digest
from fca.output.names import FIGURES
from fca.plan import Plan


def index(plan: Plan) -> dict[str, Any]:
    """Readable names of all artifacts, and what the outputs need to know."""
    return {
        "analysis": plan.config["analysis"],
        "stores": [str(root) for root in plan.store.layers],
        "inputs": plan.inputs,
        "models": plan.models,
        "config": plan.config,
        "code": code_digest(
            "fca.output.tables",
            "fca.output.figures",
            "fca.output.report",
            *(f"fca.output.plots.{name}" for name in FIGURES),
        ),
        "page": digest([(ROOT / "output" / f"report.{kind}").read_text() for kind in ("html", "css")]),
    }


def write_plan(plan: Plan) -> Path:
    """Write results/<analysis>/plan.json if it changed: what it names decides the outputs."""
    path = plan.results / "plan.json"
    text = json.dumps(index(plan), indent=1) + "\n"
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_text(text)
        beside.replace(path)
    return path
