rule record_coefficients:
    input:
        model=upstream("coefficients", "model"),
        inputs=upstream("coefficients", "inputs"),
    output:
        artifact("coefficients"),
    log:
        f"{RESULTS}/logs/coefficients/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    threads: config["passes"]["threads"]
    resources:
        mem_mb=memory("coefficients"),
        runtime=minutes("coefficients"),
    params:
        title=title("coefficients"),
        stores=STORES,
        split=planned("coefficients", "split"),
        shard=planned("coefficients", "shard"),
        shards=planned("coefficients", "shards"),
        batch_size=planned("coefficients", "batch_size"),
        precision=planned("coefficients", "precision"),
        device=planned("coefficients", "device"),
    message:
        "record coefficients of {params.title}"
    shell:
        "fca coefficients {params.stores} --key {wildcards.key} "
        "--model {input.model:q} --inputs {input.inputs:q} --split {params.split:q} "
        "--shard {params.shard:q} --shards {params.shards:q} --batch-size {params.batch_size:q} "
        "--precision {params.precision:q} --device {params.device:q} --threads {threads} "
        "2> >(tee {log} >&2)"


rule estimate_profiles:
    input:
        calibration=upstream("profiles", "calibration"),
    output:
        artifact("profiles"),
    log:
        f"{RESULTS}/logs/profiles/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    resources:
        mem_mb=memory("profiles"),
        runtime=minutes("profiles"),
    params:
        title=title("profiles"),
        stores=STORES,
        calibration=each("--calibration", "calibration"),
    message:
        "estimate static profiles of {params.title}"
    shell:
        "fca profiles {params.stores} --key {wildcards.key} "
        "{params.calibration} "
        "2> >(tee {log} >&2)"


rule coefficients:
    input:
        PLAN.targets("coefficients"),


rule profiles:
    input:
        PLAN.targets("profiles"),
