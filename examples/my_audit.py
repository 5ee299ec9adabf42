"""The whole audit of one's own model in a notebook's worth of lines; run it with python."""

import torch
from my_model import make

import fca

model = make()
tokens = torch.randint(1, 256, (24, 48), generator=torch.Generator().manual_seed(0))
evaluation, calibration = tokens[:12], tokens[12:]  # static profiles are estimated on other inputs

sites = fca.find_sites(model, "layers.*.gate")
record = fca.capture(model, sites, evaluation, batch_size=4)
before = fca.capture(model, sites, calibration, batch_size=4)
print(record)

exact = fca.replay(model, sites, evaluation, fca.correct(record))
assert exact.attrs["logits_sha256"] == record.attrs["logits_sha256"]  # bit for bit
assert exact.attrs["controller_runs"] == 0

changes = [change(record) for change in (fca.cross_input, fca.token_shuffle, fca.layer_shuffle)]
changes += [fca.layer_mean(before), fca.global_mean(before)]
for coefficients in changes:
    replay = fca.replay(model, sites, evaluation, coefficients, batch_size=4)
    penalty = float(replay["nll"].mean() - record["nll"].mean())
    print(f"{coefficients.attrs['intervention']:<14} {penalty:+.5f} nats per token")
