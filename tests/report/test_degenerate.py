"""Audits with next to nothing to go by: every number is defined or the word undefined, nothing crashes."""

import json
from pathlib import Path

import pandas as pd
import pytest

from fca.figures.draw import draw_figures
from fca.planning.config import check, load
from fca.planning.make import make
from fca.planning.plan import Plan
from fca.planning.plan_file import write_plan
from fca.report.page import write_report
from fca.report.tables import write_tables
from fca.results.sample_size import print_power

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, monkeypatch, changes: dict) -> Path:
    """All jobs of an audit in one process, then tables, figures and report; its results folder."""
    monkeypatch.chdir(folder)
    for i in range(24):
        Path(f"{i}.txt").write_text(f"document {i} says {i * i} and no more than that " * 3)
    config = load(ROOT / "config.yaml", ROOT / "analyses/smoke.yaml") | {
        "analysis": "degenerate",
        "lattice": "full",
        "layers": {"interventions": ["cross_input", "layer_mean"], "orders": ["alone", "from_bottom", "from_top"], "repeats": 1},
        "divergence": {"inputs": 2},
        "effects": {"resamples": 100, "confidence": 0.95},
        "execution": {"batch_size": 1, "rounds": 2, "threads": 1},
    }  # fmt: skip
    config["inputs"] |= {"corpus": "text", "source": str(folder / "*.txt"), "length": 16, "calibration": 2}
    config["inputs"]["split"] = {"training": 0.4, "calibration": 0.3, "evaluation": 0.3}
    config["training"] |= {"steps": 1, "learning_rate": 1e-12, "warmup": 0, "batch_size": 2}
    for key, value in changes.items():
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    check(config)
    plan = Plan(config)
    for job in plan.jobs:
        make(job.stage, job.arguments, plan.store, job.key)
    index = write_plan(plan)
    write_tables(index)
    draw_figures(index)
    write_report(index)
    print_power(index, None, "layer_mean")
    return plan.results


#: one layer, constant coefficients (an untrained gate), so that all replays lose the same
CONSTANT = {
    "backbone": {"layers": 1, "width": 16, "heads": 2},
    "models": [{"name": "gate", "kind": "featuregate", "seeds": [0]}],
}
CASES = {
    "one input": CONSTANT | {"inputs": {"evaluation": 1}},
    "two inputs": CONSTANT | {"inputs": {"evaluation": 2}},
    "many channels, two seeds": {
        "backbone": {"layers": 2, "width": 16, "heads": 2},
        "models": [{"name": "mudd", "kind": "mudd", "seeds": [0, 1]}],
        "inputs": {"evaluation": 3},
        "layers": {"interventions": []},
        "divergence": {"inputs": 0},
    },
    "nothing to audit": {
        "backbone": {"layers": 1, "width": 16, "heads": 2},
        "models": [{"name": "dense", "kind": "dense", "seeds": [0]}],
        "inputs": {"evaluation": 2},
    },
}


@pytest.mark.parametrize("case", CASES)
def test_every_number_is_defined_or_undefined(case, tmp_path, monkeypatch, capsys):
    results = run(tmp_path, monkeypatch, CASES[case])
    tables = {p.stem: p for p in (results / "tables").glob("*.csv")}
    assert {"effects", "variance", "execution", "groups", "hierarchy"} <= set(tables)
    if case != "nothing to audit":
        assert {"factors", "layers", "divergence", "captured", "icc"} <= set(tables)
    for path in tables.values():
        table = pd.read_csv(path, keep_default_na=False, na_values=["nan", "NaN", "", "inf", "-inf"])
        assert not table.isna().any().any(), path
    json.loads((results / "claims.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    said = capsys.readouterr().out
    if case == "nothing to audit":
        assert "no audited model was replayed under layer_mean" in said
        return
    retention = pd.read_csv(tables["effects"], keep_default_na=False)["retention"]
    assert (retention == "undefined").all()
    assert "cannot tell 95 % from 100 %" in said
    assert "cannot tell 95 % from 100 %" in (results / "report.html").read_text()
