"""The whole audit of one's own model in a notebook's worth of lines; run it with python."""

import torch
from my_model import make

import fca

model = make()
tokens = torch.randint(1, 256, (12, 48), generator=torch.Generator().manual_seed(0))

sites = fca.find_sites(model, "layers.*.gate")
record = fca.capture(model, sites, tokens, batch_size=4)
print(record)

exact = fca.replay(model, sites, tokens, fca.correct(record))
assert exact.attrs["logits_sha256"] == record.attrs["logits_sha256"]  # bit for bit
assert exact.attrs["controller_runs"] == 0

for change in (fca.cross_input, fca.token_shuffle, fca.layer_shuffle, fca.layer_mean, fca.global_mean):
    replay = fca.replay(model, sites, tokens, change(record))
    penalty = float(replay["nll"].mean() - record["nll"].mean())
    print(f"{change.__name__:<14} {penalty:+.5f} nats per token")
