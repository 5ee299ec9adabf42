rule extract_inputs:
    output:
        artifact("inputs"),
    params:
        options=options("inputs"),
        label=label("inputs"),
    log:
        f"{RESULTS}/logs/inputs/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    message:
        "extract inputs from {params.label}"
    shell:
        "fca inputs {params.options} 2> >(tee {log} >&2)"


rule inputs:
    input:
        PLAN.targets("inputs"),
