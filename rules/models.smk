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
        title=title("models"),
        stores=STORES,
        kind=planned("models", "kind"),
        architecture=planned("models", "architecture"),
        steps=planned("models", "steps"),
        batch_size=planned("models", "batch_size"),
        learning_rate=planned("models", "learning_rate"),
        warmup=planned("models", "warmup"),
        weight_decay=planned("models", "weight_decay"),
        precision=planned("models", "precision"),
        seed=planned("models", "seed"),
        device=planned("models", "device"),
        torch_threads=planned("models", "threads"),
        processes=planned("models", "processes"),
        save_every=planned("models", "save_every"),
        micro_batch_size=planned("models", "micro_batch_size"),
        launcher=launcher,
    message:
        "train {params.title}"
    shell:
        "{params.launcher} models {params.stores} --key {wildcards.key} "
        "--inputs {input.inputs:q} --kind {params.kind:q} --architecture {params.architecture:q} "
        "--steps {params.steps:q} --batch-size {params.batch_size:q} "
        "--learning-rate {params.learning_rate:q} --warmup {params.warmup:q} "
        "--weight-decay {params.weight_decay:q} --precision {params.precision:q} "
        "--seed {params.seed:q} --device {params.device:q} --threads {params.torch_threads:q} "
        "--processes {params.processes:q} --save-every {params.save_every:q} "
        "--micro-batch-size {params.micro_batch_size:q} "
        "2> >(tee {log} >&2)"


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
        title=title("imports"),
        stores=STORES,
        kind=planned("imports", "kind"),
        source=planned("imports", "source"),
        sites=planned("imports", "sites"),
        options=planned("imports", "options"),
    message:
        "import {params.title}"
    shell:
        "fca imports {params.stores} --key {wildcards.key} "
        "--kind {params.kind:q} --source {params.source:q} --sites {params.sites:q} "
        "--options {params.options:q} "
        "2> >(tee {log} >&2)"


rule models:
    input:
        PLAN.targets("models"),
        PLAN.targets("imports"),
