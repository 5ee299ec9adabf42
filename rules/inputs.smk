rule extract_inputs:
    output:
        artifact("inputs"),
    log:
        f"{RESULTS}/logs/inputs/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    resources:
        mem_mb=memory("inputs"),
        runtime=minutes("inputs"),
    params:
        title=title("inputs"),
        stores=STORES,
        corpus=planned("inputs", "corpus"),
        source=planned("inputs", "source"),
        field=planned("inputs", "field"),
        tokenizer=planned("inputs", "tokenizer"),
        length=planned("inputs", "length"),
        calibration=planned("inputs", "calibration"),
        evaluation=planned("inputs", "evaluation"),
        split=planned("inputs", "split"),
        seed=planned("inputs", "seed"),
    message:
        "extract inputs from {params.title}"
    shell:
        "fca inputs {params.stores} --key {wildcards.key} "
        "--corpus {params.corpus:q} --source {params.source:q} --field {params.field:q} "
        "--tokenizer {params.tokenizer:q} --length {params.length:q} "
        "--calibration {params.calibration:q} --evaluation {params.evaluation:q} "
        "--split {params.split:q} --seed {params.seed:q} "
        "2> >(tee {log} >&2)"


rule inputs:
    input:
        PLAN.targets("inputs"),
