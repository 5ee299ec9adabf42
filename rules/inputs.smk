rule extract_inputs:
    output:
        artifact("inputs"),
    log:
        f"{RESULTS}/logs/inputs/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    resources:
        mem_mb=memory("inputs"),
        runtime=minutes("inputs"),
    params:
        options=options("inputs"),
        label=label("inputs"),
    message:
        "extract inputs from {params.label}"
    shell:
        "fca inputs {params.options} 2> >(tee {log} >&2)"


rule inputs:
    input:
        PLAN.targets("inputs"),
