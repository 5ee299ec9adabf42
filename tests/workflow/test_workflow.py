"""The whole workflow as a user runs it, at the smallest size; then again, renamed, and extended."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TABLES = (
    "effects", "factors", "sinks", "positions", "frequencies", "divergence", "layers", "variance", "icc",
    "captured", "execution", "groups", "hierarchy",
)  # fmt: skip
BIN = Path(sys.executable).parent


def snakemake(folder: Path, *arguments: str, fails: bool = False) -> str:
    import os

    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    overlay = () if "--configfile" in arguments else ("--configfile", "analyses/smoke.yaml")
    command = [str(BIN / "snakemake"), "--cores", "2", *arguments, *overlay]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def jobs(output: str) -> dict[str, int]:
    """The job counts that Snakemake announces."""
    table = re.search(r"^job +count\n-+ +-+\n(.*?)^total", output, re.M | re.S)
    return (
        {} if table is None else {n: int(c) for n, c in re.findall(r"^(\w+) +(\d+)$", table.group(1), re.M)}
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("clone")
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, folder)
    for name in ("rules", "analyses", "envs", "profiles", "workflow"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    return folder


@pytest.fixture(scope="module")
def audit(clone) -> Path:
    snakemake(clone, "all")
    return clone / "results" / "smoke"


def test_outputs_are_there_and_whole(audit):
    from fca.figures import FIGURES

    for name in FIGURES:
        assert (audit / "figures" / f"{name}.svg").stat().st_size > 2000
        assert (audit / "figures" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    for name in TABLES:
        table = pd.read_csv(
            audit / "tables" / f"{name}.csv", keep_default_na=False, na_values=["nan", "NaN", ""]
        )
        assert len(table) or name == "sinks", name  # no shuffle of the smoke audit spares the first tokens
        assert not table.isna().any().any(), name
    assert {path.stem for path in (audit / "tables").glob("*.csv")} == set(TABLES)
    page = (audit / "report.html").read_text()
    for model in ("dense", "featuregate", "mudd"):
        assert re.search(rf'<th scope="row">{model}<', page)
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page), "the page needs another file"
    assert not re.search(r"\bnan\b", re.sub(r"data:[^\"]+", "", page).lower())


def test_claims_hold_numbers_and_proofs(audit):
    claims = json.loads((audit / "claims.json").read_text())
    assert set(claims["models"]) == {"dense", "featuregate", "mudd"}
    for name in ("featuregate", "mudd"):
        claim = claims["models"][name]
        shares = [claim["variation"][f"share_{k}"]["value"] for k in ("static", "position", "input")]
        assert sum(shares) == pytest.approx(1)
        assert claim["execution"]["blocks_executed_share"]["value"] == 1
        assert claim["execution"]["executes_less"] is False
        assert set(claim["dependence"]["free_layers"]) == {"layer_mean, alone"}
        assert claim["dependence"]["kl"]["layer_mean"]["value"] >= 0
        for proofs in claim["proofs"].values():
            assert all(proofs[name] is True for name in ("identity", "multisets_kept", "disjoint"))
            assert proofs["controller_runs"] == 0
    assert "layer_shuffle" in next(iter(claims["models"]["mudd"]["proofs"].values()))["undefined"]


def test_power_says_what_it_takes(audit, clone):
    """The answer for mudd recomputed: the smallest number whose linearised t interval is so narrow."""
    command = [str(BIN / "fca"), "power", "--index", "results/smoke/index.json", "--width", "0.01"]
    said = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=True).stdout
    index = json.loads((audit / "index.json").read_text())
    entry = next(e for e in index["models"] if e["model"] == "mudd")
    inputs = pd.read_csv(clone / "results/store" / entry["artifacts"]["effects"] / "inputs.csv")
    by_document = inputs.drop(columns="input").groupby("document").sum()
    gap = by_document["global_mean"] - by_document["correct"]
    kept = by_document["global_mean"] - by_document["layer_mean"]
    n, ratio = len(gap), kept.sum() / gap.sum()
    error = np.sqrt(n / (n - 1) * ((kept - ratio * gap) ** 2).sum()) / gap.sum()

    def needed(width: float) -> int:
        count = np.arange(2, 1_000_000)
        wide = 2 * stats.t.ppf(0.975, count - 1) * error * np.sqrt(n / count)
        return int(np.ceil(count[wide <= width][0] * len(inputs) / n))

    answer = re.search(r"mudd, seed 0, layer_mean: .* wide takes about ([\d,]+) inputs", said)
    assert answer, said
    assert int(answer.group(1).replace(",", "")) == needed(0.01)
    claimed = json.loads((audit / "claims.json").read_text())["models"]["mudd"]["power"]["0"]
    assert claimed["inputs_needed"] == needed(claimed["for_width"])
    assert claimed["tells"] == (claimed["width"] <= claimed["for_width"])


def test_numbers_recomputed_from_the_store(audit, clone):
    """Penalties, retentions and variance shares from the raw stores, by code that shares nothing."""
    index = json.loads((audit / "index.json").read_text())
    effects = pd.read_csv(audit / "tables/effects.csv", na_values="undefined")
    variance = pd.read_csv(audit / "tables/variance.csv")

    def opened(name, file):
        return xr.open_zarr(clone / "results/store" / name / file, consolidated=False)

    checked = 0
    for entry in index["models"]:
        if "replay" not in entry["artifacts"]:
            continue
        mine = effects[effects["model"] == entry["model"]].set_index("intervention")
        loss = {
            i: float(opened(name, "replay.zarr")["nll"].mean(dtype="float64"))
            for i, name in entry["artifacts"]["replay"].items()
            if i in mine.index
        }
        gap = loss["global_mean"] - loss["correct"]
        for i in loss:
            assert mine.loc[i, "penalty"] == pytest.approx(loss[i] - loss["correct"], abs=1e-9)
            if np.isfinite(mine.loc[i, "retention"]):
                assert mine.loc[i, "retention"] == pytest.approx(
                    (loss["global_mean"] - loss[i]) / gap, abs=1e-6
                )
            checked += 1
        c = opened(entry["artifacts"]["evaluation"][0], "recording.zarr")["coefficients"].values.astype(
            np.float64
        )
        shares = variance[variance["model"] == entry["model"]].set_index("term")["share"]
        between = ((c.mean(axis=(0, 1)) - c.mean()) ** 2).mean() / c.var()
        assert shares["layer"] + shares.get("channel", 0.0) == pytest.approx(between)
    assert checked >= 10


def test_the_ten_lines_of_the_docs_give_the_same_numbers(audit, clone):
    text = (ROOT / "docs/store.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.S).group(1).replace("results/default", "results/smoke")
    done = subprocess.run([sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, check=True)
    printed = dict(line.split() for line in done.stdout.splitlines())
    table = pd.read_csv(audit / "tables/effects.csv", na_values="undefined")
    mine = table[table["model"] == "mudd"].set_index("intervention")
    assert float(printed["penalty"]) == pytest.approx(mine.loc["cross_input", "penalty"])
    assert float(printed["retention"]) == pytest.approx(mine.loc["layer_mean", "retention"])


def test_a_model_of_ones_own_in_the_workflow(clone):
    shutil.copytree(ROOT / "examples", clone / "examples")
    (clone / "my_model.py").write_text((ROOT / "examples/my_model.py").read_text())
    snakemake(clone, "all", "--configfile", "examples/my_audit.yaml")
    claims = json.loads((clone / "results/my-model/claims.json").read_text())
    proofs = claims["models"]["my-model"]["proofs"]["0"]
    assert proofs["identity"] is True
    assert proofs["controller_runs"] == 0
    before = jobs(snakemake(clone, "all", "-n", "--configfile", "examples/my_audit.yaml"))
    assert before == {}
    edited = (clone / "my_model.py").read_text().replace("torch.tanh", "torch.sin")
    (clone / "my_model.py").write_text(edited)
    after = jobs(snakemake(clone, "all", "-n", "--configfile", "examples/my_audit.yaml"))
    assert after["import_model"] == 1


def test_the_same_again_runs_nothing(audit, clone):
    assert "Nothing to be done" in snakemake(clone, "all")


def test_another_name_trains_and_records_nothing(audit, clone):
    counted = jobs(snakemake(clone, "all", "-n", "--config", "analysis=renamed"))
    assert counted == {"all": 1, "write_tables": 1, "draw_figures": 1, "write_report": 1}


def test_a_new_intervention_runs_its_replays_only(audit, clone):
    overlay = clone / "more.yaml"
    overlay.write_text(
        "interventions: [cross_input, token_shuffle, layer_shuffle, global_mean, layer_mean, token_mean]\n"
    )
    counted = jobs(snakemake(clone, "all", "-n", "--configfile", "analyses/smoke.yaml", "more.yaml"))
    assert counted == {
        "all": 1,
        "replay_intervention": 2,
        "estimate_effects": 2,
        "write_tables": 1,
        "draw_figures": 1,
        "write_report": 1,
    }


def test_a_store_of_others_is_read_and_never_written(audit, clone):
    def snapshot():
        return {str(f): f.stat().st_mtime_ns for f in (clone / "results/store").rglob("*")}

    before = snapshot()
    overlay = clone / "team.yaml"
    overlay.write_text(
        "analysis: team\nstores: [results/mine, results/store]\n"
        "interventions: [cross_input, token_shuffle, layer_shuffle, global_mean, layer_mean, token_mean]\n"
    )
    counted = jobs(snakemake(clone, "effects", "--configfile", "analyses/smoke.yaml", "team.yaml"))
    assert counted == {"effects": 1, "replay_intervention": 2, "estimate_effects": 2}
    made = {p.parent.parent.name for p in (clone / "results/mine").glob("[!.]*/[!.]*/manifest.json")}
    assert made == {"replay", "effects"}
    snakemake(clone, "all", "--configfile", "analyses/smoke.yaml", "team.yaml")
    assert "results/mine, results/store" in (clone / "results/team/report.html").read_text()
    assert snapshot() == before


def test_stages_can_be_called_by_name(audit, clone):
    for stage in (
        "inputs",
        "models",
        "coefficients",
        "profiles",
        "replay",
        "variance",
        "effects",
        "execution",
    ):
        assert "Nothing to be done" in snakemake(clone, stage)


def test_a_job_can_be_copied_from_the_log_and_run_alone(audit, clone):
    output = snakemake(clone, "all", "-n", "--config", "seed=5")
    command = re.search(r"Shell command: (fca replay .*?) 2> ", output).group(1)
    done = subprocess.run(
        command, cwd=clone, shell=True, capture_output=True, text=True, env={"PATH": f"{BIN}:/usr/bin:/bin"}
    )
    assert done.returncode == 0, done.stderr
    assert (clone / done.stdout.strip() / "manifest.json").is_file()


def test_store_commands(audit, clone):
    def fca(*arguments, status=0):
        done = subprocess.run([BIN / "fca", "store", *arguments], cwd=clone, capture_output=True, text=True)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    listed = fca("list").splitlines()
    assert len(listed) >= 30
    name = listed[0].split()[0]
    assert json.loads(fca("show", name))["recipe"]["stage"] == name.split("/")[0]
    assert "0 differences" in fca("verify")
    needed = {line.split()[0] for line in listed}
    removable = [
        line.split()[-1]
        for line in fca("gc", "results/smoke/index.json", "--spare-hours", "0").splitlines()
        if "would remove" in line
    ]
    audited = json.loads((audit / "index.json").read_text())
    assert not any(str(m["artifacts"]["models"]) in path for path in removable for m in audited["models"])
    assert len(removable) < len(needed) - 20
    assert "names 0 artifacts" in fca("show", "zzz", status=1)
    file = next((clone / "results/store" / name).rglob("zarr.json"), None) or next(
        f for f in (clone / "results/store" / name).iterdir() if f.name != "manifest.json"
    )
    content = file.read_bytes()
    file.write_bytes(content + b" ")
    assert "changed" in fca("verify", status=1)
    file.write_bytes(content)


def test_mistakes_stop_before_anything_runs(clone):
    output = snakemake(clone, "all", "--config", "repeatz=3", fails=True)
    assert "unknown key 'repeatz'; did you mean 'repeats'?" in output
    assert "Traceback" not in output
    output = snakemake(
        clone, "all", "--config", "inputs={'corpus': 'text', 'source': 'nowhere/*.txt'}", fails=True
    )
    assert "no file matches 'nowhere/*.txt'" in output


def test_what_is_not_on_this_machine_is_said(clone, tmp_path):
    """A corpus that a store remembers but that is gone: a line says so before anything runs."""
    corpus = clone / "gone.txt"
    corpus.write_text("text\n" * 2000)
    overlay = clone / "gone.yaml"
    overlay.write_text(
        "analysis: gone\nstore: results/gone-store\ninputs: {corpus: lines, source: gone.txt}\n"
    )
    files = ("--configfile", "analyses/smoke.yaml", "gone.yaml")
    assert "not on this machine" not in snakemake(clone, "inputs", "-n", *files)
    corpus.unlink()
    said = "gone.txt is not on this machine: artifacts made from it before are used, none can be made"
    assert said in snakemake(clone, "inputs", "-n", *files)


def test_too_little_text_is_one_message_and_leaves_nothing(clone):
    before = set((clone / "results").rglob("manifest.json"))
    (clone / "large.yaml").write_text("inputs: {evaluation: 100000000}\n")
    output = snakemake(clone, "inputs", "--configfile", "analyses/smoke.yaml", "large.yaml", fails=True)
    assert "inputs.evaluation: 100000000 inputs of 64 tokens asked for" in output
    assert set((clone / "results").rglob("manifest.json")) == before
