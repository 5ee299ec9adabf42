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
        title=title("layers"),
        stores=STORES,
        evaluation=each("--evaluation", "evaluation"),
        intervention=planned("layers", "intervention"),
        order=planned("layers", "order"),
        repeats=planned("layers", "repeats"),
        seed=planned("layers", "seed"),
        shard=planned("layers", "shard"),
        device=planned("layers", "device"),
    message:
        "map layers of {params.title}"
    shell:
        "fca layers {params.stores} --key {wildcards.key} "
        "--model {input.model:q} --profiles {input.profiles:q} {params.evaluation} "
        "--intervention {params.intervention:q} --order {params.order:q} "
        "--repeats {params.repeats:q} --seed {params.seed:q} --shard {params.shard:q} "
        "--device {params.device:q} "
        "2> >(tee {log} >&2)"


rule layers:
    input:
        PLAN.targets("layers"),
