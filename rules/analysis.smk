rule decompose_variance:
    input:
        evaluation=upstream("variance", "evaluation"),
        profiles=upstream("variance", "profiles"),
    output:
        artifact("variance"),
    log:
        f"{RESULTS}/logs/variance/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    resources:
        mem_mb=memory("variance"),
        runtime=minutes("variance"),
    params:
        title=title("variance"),
        stores=STORES,
        evaluation=each("--evaluation", "evaluation"),
        resamples=planned("variance", "resamples"),
        confidence=planned("variance", "confidence"),
        seed=planned("variance", "seed"),
    message:
        "decompose variance of {params.title}"
    shell:
        "fca variance {params.stores} --key {wildcards.key} "
        "--profiles {input.profiles:q} {params.evaluation} --resamples {params.resamples:q} "
        "--confidence {params.confidence:q} --seed {params.seed:q} "
        "2> >(tee {log} >&2)"


rule estimate_effects:
    input:
        calibration=upstream("effects", "calibration"),
        evaluation=upstream("effects", "evaluation"),
        replays=upstream("effects", "replays"),
        maps=upstream("effects", "maps"),
    output:
        artifact("effects"),
    log:
        f"{RESULTS}/logs/effects/{{key}}.log",
    conda:
        "../envs/fca.yaml"
    resources:
        mem_mb=memory("effects"),
        runtime=minutes("effects"),
    params:
        title=title("effects"),
        stores=STORES,
        calibration=each("--calibration", "calibration"),
        evaluation=each("--evaluation", "evaluation"),
        replays=each("--replays", "replays"),
        maps=each("--maps", "maps"),
        resamples=planned("effects", "resamples"),
        confidence=planned("effects", "confidence"),
        seed=planned("effects", "seed"),
    message:
        "estimate effects of {params.title}"
    shell:
        "fca effects {params.stores} --key {wildcards.key} "
        "{params.calibration} {params.evaluation} {params.replays} {params.maps} "
        "--resamples {params.resamples:q} --confidence {params.confidence:q} "
        "--seed {params.seed:q} "
        "2> >(tee {log} >&2)"


rule variance:
    input:
        PLAN.targets("variance"),


rule effects:
    input:
        PLAN.targets("effects"),
