rule train_model:
    input:
        inputs=upstream("models", "inputs"),
    output:
        artifact("models"),
    log:
        f"{RESULTS}/logs/models/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    threads: cores
    resources:
        mem_mb=memory("models"),
        runtime=minutes("models"),
    params:
        options=options("models"),
        label=label("models"),
        launcher=launcher,
    message:
        "train {params.label}"
    shell:
        "{params.launcher} models {params.options} 2> >(tee {log} >&2)"


rule import_model:
    output:
        artifact("imports"),
    log:
        f"{RESULTS}/logs/imports/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    resources:
        mem_mb=memory("imports"),
        runtime=minutes("imports"),
    params:
        options=options("imports"),
        label=label("imports"),
    message:
        "import {params.label}"
    shell:
        "fca imports {params.options} 2> >(tee {log} >&2)"


rule models:
    input:
        PLAN.targets("models"),
        PLAN.targets("imports"),
