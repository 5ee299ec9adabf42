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
        title=title("replay"),
        stores=STORES,
        evaluation=each("--evaluation", "evaluation"),
        intervention=planned("replay", "intervention"),
        repeats=planned("replay", "repeats"),
        seed=planned("replay", "seed"),
        compared=planned("replay", "compared"),
        shard=planned("replay", "shard"),
        device=planned("replay", "device"),
    message:
        "replay {params.title}"
    shell:
        "fca replay {params.stores} --key {wildcards.key} "
        "--model {input.model:q} --profiles {input.profiles:q} {params.evaluation} "
        "--intervention {params.intervention:q} --repeats {params.repeats:q} "
        "--seed {params.seed:q} --compared {params.compared:q} --shard {params.shard:q} "
        "--device {params.device:q} "
        "2> >(tee {log} >&2)"


rule replay:
    input:
        PLAN.targets("replay"),
