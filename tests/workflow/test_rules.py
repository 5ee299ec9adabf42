"""A rule shows what its stage depends on: every argument stands in it, and nothing is decided there."""

import re
from pathlib import Path

import pytest

from fca.planning.declaration import STAGES, declaration
from fca.stages.arguments import Reads, Resumes

RULES = Path(__file__).resolve().parents[2] / "rules"
BLOCKS = [
    block
    for file in sorted(RULES.glob("*.smk"))
    for block in re.split(r"^(?=rule )", file.read_text(), flags=re.M)
    if block.startswith("rule ")
]


def rule_of(stage: str) -> str:
    (found,) = [block for block in BLOCKS if f'artifact("{stage}")' in block]
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_every_argument_of_a_stage_stands_in_its_rule(stage):
    rule = rule_of(stage)
    shell = rule[rule.index("shell:") :]
    assert re.search(rf"[}} \"](fca )?{stage} {{params.stores}} --key {{wildcards.key}}", shell)
    for argument in declaration(stage).arguments:
        if isinstance(argument.mark, Resumes):
            continue
        if isinstance(argument.mark, Reads):
            assert f'{argument.name}=upstream("{stage}", "{argument.name}")' in rule
        if argument.many or (isinstance(argument.mark, Reads) and not argument.required):
            assert f'{argument.name}=each("{argument.option}", "{argument.name}")' in rule
            assert f"{{params.{argument.name}}}" in shell
        else:
            assert re.search(rf"{argument.option} {{(input|params|threads)", shell), argument.option


@pytest.mark.parametrize("stage", STAGES)
def test_a_rule_names_no_argument_that_its_stage_lacks(stage):
    known = {argument.name for argument in declaration(stage).arguments}
    rule = rule_of(stage)
    assert set(re.findall(rf'planned\("{stage}", "(\w+)"\)', rule)) <= known
    assert set(re.findall(rf'upstream\("{stage}", "(\w+)"\)', rule)) <= known
    options = set(re.findall(r"--([a-z-]+)", rule)) - {"key", "standalone", "nproc-per-node"}
    assert {option.replace("-", "_") for option in options} <= known


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split(":")[0])
def test_rules_only_declare(block):
    assert not re.search(r"^    (run|script|notebook|wrapper):", block, re.M)
    if "shell:" in block:
        for part in ("output:", "log:", "conda:", "resources:", "mem_mb=", "runtime="):
            assert part in block
