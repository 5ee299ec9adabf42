# The human side: results/<analysis>/. plan.json changes when any key, the config or an output's code does;
# index.json names what the published tables, figures and report were made from.
rule write_tables:
    input:
        plan=PLANNED,
        variance=rules.variance.input,
        effects=rules.effects.input,
        execution=rules.execution.input,
        recordings=rules.coefficients.input,
    output:
        effects=f"{RESULTS}/tables/effects.csv",
        variance=f"{RESULTS}/tables/variance.csv",
        execution=f"{RESULTS}/tables/execution.csv",
        claims=f"{RESULTS}/claims.json",
        index=f"{RESULTS}/index.json",
    log:
        f"{RESULTS}/logs/tables.log",
    conda:
        "../envs/fca.yaml"
    resources:
        mem_mb=memory("output"),
        runtime=minutes("output"),
    shell:
        "fca tables --plan {input.plan} 2> >(tee {log} >&2)"


rule draw_figures:
    input:
        index=rules.write_tables.output.index,
        tables=rules.write_tables.output,
        models=rules.models.input,
    output:
        expand(
            f"{RESULTS}/figures/{{figure}}.{{format}}",
            figure=FIGURES,
            format=["svg", "png"],
        ),
    log:
        f"{RESULTS}/logs/figures.log",
    conda:
        "../envs/fca.yaml"
    resources:
        mem_mb=memory("output"),
        runtime=minutes("output"),
    shell:
        "fca figures --index {input.index} 2> >(tee {log} >&2)"


rule write_report:
    input:
        index=rules.write_tables.output.index,
        tables=rules.write_tables.output,
        figures=rules.draw_figures.output,
    output:
        f"{RESULTS}/report.html",
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../envs/fca.yaml"
    resources:
        mem_mb=memory("output"),
        runtime=minutes("output"),
    shell:
        "fca report --index {input.index} 2> >(tee {log} >&2)"


rule figures:
    input:
        rules.draw_figures.output,


rule report:
    input:
        rules.write_report.output,
