"""Over kinds of losses and numbers of documents, intervals hold the truth as often as they say, or refuse."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = spec_from_file_location("coverage_benchmark", ROOT / "benchmarks" / "coverage.py")
benchmark = module_from_spec(spec)
spec.loader.exec_module(benchmark)

BEYOND = {"skewed and heavy (log-normal)": 32}  # documents that it takes; docs/coverage.md says so
SAMPLES = 500
# three standard errors of a share of 95 % in so many samples
NOISE = 3 * (0.95 * 0.05 / SAMPLES) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("documents", [3, 12, 24, 64, 300])
@pytest.mark.parametrize("loss", benchmark.LOSSES)
def test_intervals_hold_the_truth_or_are_refused(loss, documents):
    held, refused = benchmark.coverage(loss, documents, SAMPLES, resamples=500)
    if documents < 12:
        assert refused == 1
    elif refused <= 0.5 and documents >= BEYOND.get(loss, 0):
        assert 0.95 - NOISE <= held <= 0.98 + NOISE / 2
    # what is printed in spite of few documents must not mislead often
    if documents >= BEYOND.get(loss, 0) and refused < 1:
        assert (1 - held) * (1 - refused) <= 0.05 + NOISE


def test_the_page_has_a_row_for_every_loss():
    page = (ROOT / "docs" / "coverage.md").read_text()
    for loss in benchmark.LOSSES:
        assert f"| {loss} |" in page
    assert "| " + " | ".join(map(str, benchmark.SIZES)) + " |" in page
