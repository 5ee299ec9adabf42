rule train_model:
    input:
        inputs=upstream("models", "inputs"),
    output:
        artifact("models"),
    log:
        f"{RESULTS}/logs/models/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    threads: config["training"]["threads"]
    params:
        options=options("models"),
        label=label("models"),
    message:
        "train {params.label}"
    shell:
        "fca models {params.options} --threads {threads} 2> >(tee {log} >&2)"


rule models:
    input:
        PLAN.targets("models"),
