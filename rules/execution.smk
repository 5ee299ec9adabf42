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
        options=options("execution"),
        label=label("execution"),
        torch_threads=config["execution"]["threads"],
    message:
        "measure execution of {params.label}"
    shell:
        "fca execution {params.options} --threads {params.torch_threads} 2> >(tee {log} >&2)"


rule execution:
    input:
        PLAN.targets("execution"),
