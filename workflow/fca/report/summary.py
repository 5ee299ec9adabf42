"""In: an analysis' claims. Out: the three answers for every model, on the terminal."""

import json
from pathlib import Path
from typing import Any

from fca.errors import FcaError
from fca.results.results import Results

PROOFS = {
    "identity": "replaying the untouched coefficients equals the live run bit for bit (logits and losses)",
    "controllers_off": "no controller ran during any replay (calls, inner modules and parameters counted, "
    "weights unusable meanwhile)",
    "multisets_kept": "every reassignment holds the same coefficients equally often",
    "disjoint": "calibration and evaluation share no document",
}


def claims_of(results: Results) -> dict[str, Any]:
    path = results.folder / "claims.json"
    if not path.is_file():
        raise FcaError(f"{path} is not there yet; run snakemake or `fca tables` first")
    found = json.loads(path.read_text())
    for claim in found["models"].values():
        for proofs in claim["proofs"].values():
            proofs["controllers_off"] = proofs["controller_runs"] == 0
    return found


def print_summary(index: Path) -> None:
    """The three answers per model on a terminal, and where the report is."""
    results = Results(index)
    claims = claims_of(results)
    for name, claim in claims["models"].items():
        seeds = f"{len(claim['seeds'])} seed" + ("s" if len(claim["seeds"]) > 1 else "")
        print(f"\n{name} ({seeds}, live loss {claim['live_nll']['value']:.3f} nats per token)")
        for question in ("variation", "dependence", "execution"):
            print(f"  {question:<11} {claim[question]['statement']}")
    held = all(
        proofs[p] for c in claims["models"].values() for proofs in c["proofs"].values() for p in PROOFS
    )
    print(f"\nproofs: {'all hold' if held else 'NOT all hold'}")
    print(f"report: {results.folder / 'report.html'}")
