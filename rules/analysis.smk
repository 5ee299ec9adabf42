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
        options=options("variance"),
        label=label("variance"),
    message:
        "decompose variance of {params.label}"
    shell:
        "fca variance {params.options} 2> >(tee {log} >&2)"


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
        options=options("effects"),
        label=label("effects"),
    message:
        "estimate effects of {params.label}"
    shell:
        "fca effects {params.options} 2> >(tee {log} >&2)"


rule variance:
    input:
        PLAN.targets("variance"),


rule effects:
    input:
        PLAN.targets("effects"),
