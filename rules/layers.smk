rule map_layers:
    input:
        model=upstream("layers", "model"),
        evaluation=upstream("layers", "evaluation"),
        profiles=upstream("layers", "profiles"),
    output:
        artifact("layers"),
    log:
        f"{RESULTS}/logs/layers/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    threads: config["passes"]["threads"]
    resources:
        mem_mb=memory("layers"),
        runtime=minutes("layers"),
    params:
        options=options("layers"),
        label=label("layers"),
    message:
        "map layers of {params.label}"
    shell:
        "fca layers {params.options} 2> >(tee {log} >&2)"


rule layers:
    input:
        PLAN.targets("layers"),
