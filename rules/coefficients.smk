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
        options=options("coefficients"),
        label=label("coefficients"),
    message:
        "record coefficients of {params.label}"
    shell:
        "fca coefficients {params.options} --threads {threads} 2> >(tee {log} >&2)"


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
        options=options("profiles"),
        label=label("profiles"),
    message:
        "estimate static profiles of {params.label}"
    shell:
        "fca profiles {params.options} 2> >(tee {log} >&2)"


rule coefficients:
    input:
        PLAN.targets("coefficients"),


rule profiles:
    input:
        PLAN.targets("profiles"),
