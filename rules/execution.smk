# Timing wants the machine to itself: the rule takes all cores of a local run.
rule measure_execution:
    input:
        model=upstream("execution", "model"),
        evaluation=upstream("execution", "evaluation"),
        profiles=upstream("execution", "profiles"),
        dense=upstream("execution", "dense"),
    output:
        artifact("execution"),
    log:
        f"{RESULTS}/logs/execution/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    threads: workflow.resource_settings.cores or config["execution"]["threads"]
    resources:
        mem_mb=memory("execution"),
        runtime=minutes("execution"),
    params:
        title=title("execution"),
        stores=STORES,
        evaluation=each("--evaluation", "evaluation"),
        dense=each("--dense", "dense"),
        batch_size=planned("execution", "batch_size"),
        rounds=planned("execution", "rounds"),
        seed=planned("execution", "seed"),
        device=planned("execution", "device"),
        torch_threads=config["execution"]["threads"],
    message:
        "measure execution of {params.title}"
    shell:
        "fca execution {params.stores} --key {wildcards.key} "
        "--model {input.model:q} --profiles {input.profiles:q} {params.evaluation} {params.dense} "
        "--batch-size {params.batch_size:q} --rounds {params.rounds:q} --seed {params.seed:q} "
        "--device {params.device:q} --threads {params.torch_threads} "
        "2> >(tee {log} >&2)"


rule execution:
    input:
        PLAN.targets("execution"),
