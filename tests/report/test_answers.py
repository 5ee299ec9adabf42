"""The three answers follow from the numbers and their intervals."""

import pandas as pd
import pytest

from fca.report.answers import above, execution, grouped_shares

CONVENTIONS = {"variation": 0.01, "dependence": 0.01, "static_enough": 0.95, "free": 0.001, "execution": 0.01}


def table(live, static, dense=True):
    """An execution table; live and static are (blocks per token of 4, experts per token of 8 or None)."""
    rows = []
    for mode, (blocks, experts) in {
        "live": live,
        "frozen": live,
        "static": static,
        "dense": (4, None),
    }.items():
        if mode == "dense" and not dense:
            continue
        rows.append(
            {
                "mode": mode,
                "blocks_present": 4,
                "blocks_executed_per_token": blocks,
                "experts_present": "undefined" if experts is None else 8,
                "experts_executed_per_token": "undefined" if experts is None else experts,
                "flops_per_token": 100.0,
                "parameters": 10,
                "ratio_to_dense": 1.2 if dense else "undefined",
            }
        )
    return pd.DataFrame(rows)


def test_skipped_blocks_are_less_execution():
    claim = execution([table((3, None), (3, None))], CONVENTIONS)
    assert claim["executes_less"] is True
    assert claim["statement"].startswith("less is executed: 75.0 % of its blocks per token")


def test_everything_runs():
    claim = execution([table((4, None), (4, None))], CONVENTIONS)
    assert claim["executes_less"] is False
    assert "120 % of its time" in claim["statement"]


def test_experts_that_do_not_run_count_without_a_dense_twin():
    claim = execution([table((4, 2), (4, 2), dense=False)], CONVENTIONS)
    assert claim["executes_less"] is True
    assert "25.0 % of its experts" in claim["statement"]
    assert "no dense model of the same sizes" in claim["statement"]
    assert claim["flops_ratio_to_dense"]["value"] is None


def test_a_dense_mixture_under_the_static_profile_is_said():
    claim = execution([table((4, 2), (4, 8))], CONVENTIONS)
    assert claim["statement"].endswith("but 100.0 % of its experts under its static profile")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.02, 0.03, True), (0.0, 0.005, False), (0.005, 0.02, None), (None, None, None)],
)
def test_a_verdict_is_as_sure_as_its_whole_interval(low, high, verdict):
    assert above({"value": 0.01, "low": low, "high": high}, 0.01) is verdict


def test_shares_are_grouped_by_what_they_hold():
    terms = {
        "layer": 0.5,
        "channel": 0.1,
        "token": 0.05,
        "layer:token": 0.05,
        "input": 0.1,
        "layer:input:token": 0.2,
    }
    frame = pd.DataFrame({"term": terms.keys(), "share": terms.values()})
    assert grouped_shares(frame) == pytest.approx(
        {"static": 0.6, "position": 0.1, "input": 0.3, "between": 0.1}
    )
