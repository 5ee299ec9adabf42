# An audit from text to report. Each rule file is one phase; rules/common.smk makes the plan.
from snakemake.utils import min_version

min_version("9.10")


configfile: "config.yaml"


include: "rules/common.smk"
include: "rules/inputs.smk"
include: "rules/models.smk"
include: "rules/coefficients.smk"
include: "rules/replay.smk"
include: "rules/layers.smk"
include: "rules/analysis.smk"
include: "rules/execution.smk"
include: "rules/output.smk"


rule all:
    default_target: True
    input:
        f"{RESULTS}/report.html",
        rules.figures.input,
