"""A vision model with squeeze-and-excite gates: one coefficient per channel and image, no tokens.

Needs timm (`pip install timm`, with a torchvision that fits the torch). There is no next token
and no accuracy here: what a replay changes is measured as the divergence (KL) of its output from
the live output, per image, so no labels are needed.
"""

import sys

import timm
import torch

import fca
from fca.controllers.families import select

name = sys.argv[1] if len(sys.argv) > 1 else "efficientnet_b0"
torch.manual_seed(0)
model = timm.create_model(name, pretrained=False, num_classes=10).eval()
images, others = torch.randn(8, 3, 64, 64), torch.randn(8, 3, 64, 64)

sites = select(model, "auto")
record = fca.capture(model, sites, images, batch_size=4)
calibration = fca.capture(model, sites, others, batch_size=4)
print(f"{name}: {len(sites)} sites, {record.sizes['coefficient']} coefficients per image")

exact = fca.replay(model, sites, images, fca.correct(record))
assert exact.attrs["logits_sha256"] == record.attrs["logits_sha256"]  # bit for bit
assert exact.attrs["controller_runs"] == 0

for change in (fca.cross_input(record), fca.layer_mean(calibration), fca.global_mean(calibration)):
    replay = fca.replay(model, sites, images, change, batch_size=4)
    print(f"{change.intervention:<12} KL {float(fca.divergence(record, replay).mean()):.6f} nats per image")
