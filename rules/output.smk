# The human side: results/<analysis>/. The index changes when any key or the config does.
rule write_tables:
    input:
        index=INDEX,
        variance=rules.variance.input,
        effects=rules.effects.input,
        execution=rules.execution.input,
        recordings=rules.coefficients.input,
    output:
        effects=f"{RESULTS}/tables/effects.csv",
        variance=f"{RESULTS}/tables/variance.csv",
        execution=f"{RESULTS}/tables/execution.csv",
        claims=f"{RESULTS}/claims.json",
    log:
        f"{RESULTS}/logs/tables.log",
    conda:
        "../envs/fca.yaml"
    shell:
        "fca tables --index {input.index} 2> >(tee {log} >&2)"


rule draw_figures:
    input:
        index=INDEX,
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
    shell:
        "fca figures --index {input.index} 2> >(tee {log} >&2)"


rule write_report:
    input:
        index=INDEX,
        tables=rules.write_tables.output,
        figures=rules.draw_figures.output,
    output:
        f"{RESULTS}/report.html",
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../envs/fca.yaml"
    shell:
        "fca report --index {input.index} 2> >(tee {log} >&2)"


rule figures:
    input:
        rules.draw_figures.output,


rule report:
    input:
        rules.write_report.output,
