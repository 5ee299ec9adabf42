rule replay_intervention:
    input:
        model=upstream("replay", "model"),
        evaluation=upstream("replay", "evaluation"),
        profiles=upstream("replay", "profiles"),
    output:
        artifact("replay"),
    log:
        f"{RESULTS}/logs/replay/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    threads: config["passes"]["threads"]
    resources:
        mem_mb=memory("replay"),
        runtime=minutes("replay"),
    params:
        options=options("replay"),
        label=label("replay"),
    message:
        "replay {params.label}"
    shell:
        "fca replay {params.options} 2> >(tee {log} >&2)"


rule replay:
    input:
        PLAN.targets("replay"),
