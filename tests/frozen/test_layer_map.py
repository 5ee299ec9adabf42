"""A layer map equals full replays with only some layers changed, bit for bit, and reuses the rest."""

import numpy as np
import pytest
import torch
from public_models import build as build_family
from tiny import ARCHITECTURE, build
from torch import nn

import fca
from fca.architectures import early_exit, featuregate, mixture_of_depths, moe, mudd
from fca.controllers.families import known_sites
from fca.errors import ProofError
from fca.frozen.layer_map import ORDERS, changes, reusable, variants
from fca.frozen.passes import record, replay
from fca.machine.counting import flops

KINDS = {"featuregate": featuregate.sites, "mudd": mudd.sites}


def recorded(model, sites, tokens):
    live = list(record(model, sites, tokens, 4))
    coefficients = np.concatenate([b.coefficients for b in live])
    layers = np.concatenate(
        [[s.layer] * sum(f.channels for f in calls) for s, calls in zip(sites, live[0].forms)]
    )
    return live[0].forms, coefficients, layers


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_map_is_the_full_replay_with_those_layers_changed(kind, order, tokens):
    model = build(kind)
    sites, blocks = KINDS[kind](model), reusable(model)
    forms, correct, layers = recorded(model, sites, tokens)
    other = np.roll(correct, 3, axis=0)
    swapped, masks = changes(layers, order)
    base, changed = (other, correct) if swapped else (correct, other)
    found = np.empty((len(masks), len(tokens), tokens.shape[1] - 1), dtype=np.float32)
    for part in variants(
        model, sites, forms, blocks, tokens, lambda i: base[i], [lambda i: changed[i]], masks, 4
    ):
        if part.variant is not None:
            found[part.variant, part.inputs] = part.nll
    touches = {
        "alone": lambda layer: layers == layer,
        "from_bottom": lambda layer: layers <= layer,
        "from_top": lambda layer: layers >= layer,
    }[order]
    for layer in range(3):
        values = np.where(touches(layer), other, correct)
        full = list(replay(model, sites, forms, tokens, lambda i, v=values: v[i], 4))
        assert np.array_equal(found[layer], np.concatenate([b.nll for b in full]))
        assert not np.array_equal(found[layer], found[layer - 1])
    assert all("forward" not in m.__dict__ and not m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize(("kind", "expected"), [("featuregate", 3 + 3 + 2 + 1), ("mudd", 3 + 2 + 1 + 0)])
def test_blocks_below_the_touched_layer_are_not_computed_again(kind, expected, tokens):
    model = build(kind)
    sites, blocks = KINDS[kind](model), reusable(model)
    forms, correct, layers = recorded(model, sites, tokens)
    ran = []
    norm = {"featuregate": "feed_forward_norm", "mudd": "ffn_norm"}[kind]
    for path in blocks[:3]:
        getattr(model.get_submodule(path), norm).register_forward_hook(lambda *_: ran.append(1))
    other = np.roll(correct, 3, axis=0)
    _, masks = changes(layers, "alone")
    list(variants(model, sites, forms, blocks, tokens, lambda i: correct[i], [lambda i: other[i]], masks, 10))
    assert len(ran) == expected  # the base, then only what lies above each touched site


@pytest.mark.slow
@pytest.mark.parametrize(("draws", "most"), [(1, 0.60), (3, 0.56)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_map_over_16_layers_does_less_than_its_full_replays(kind, draws, most):
    """Counted operations, which no busy machine can change; benchmarks/layer_map.py takes the time."""
    model = build(kind, {"vocabulary": 64, "length": 32, "layers": 16, "width": 64, "heads": 2})
    sites = KINDS[kind](model)
    tokens = np.random.default_rng(0).integers(0, 64, size=(4, 32))
    forms, correct, layers = recorded(model, sites, tokens)
    masks = changes(layers, "alone")[1]
    others = [lambda i, k=k: np.roll(correct, k, axis=0)[i] for k in range(1, draws + 1)]
    found = []

    def mapped():
        arguments = (reusable(model), tokens, lambda i: correct[i], others, masks, 4)
        found.extend(part for part in variants(model, sites, forms, *arguments) if part.draw is not None)

    def full():
        for part in found:
            values = np.where(masks[part.variant], others[part.draw](slice(None)), correct)
            replayed = next(iter(replay(model, sites, forms, tokens, lambda i, v=values: v[i], 4)))
            assert np.array_equal(part.nll, replayed.nll)

    executed = flops(mapped).total, flops(full).total
    assert len({part.nll.tobytes() for part in found}) == 16 * draws  # all differ
    assert 0.4 < executed[0] / executed[1] <= most


class InPlace(nn.Module):
    """Blocks that edit the residual they are given."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(8, 1)

        def forward(self, h):
            return h.add_(self.gate(h))

    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(50, 8), nn.Linear(8, 50)
        self.blocks = nn.ModuleList(self.Block() for _ in range(3))

    def forward(self, tokens):
        h = self.embedding(tokens)
        for block in self.blocks:
            h = block(h)
        return self.out(h)


def test_a_model_that_edits_in_place_is_computed_from_the_start(tokens):
    model = InPlace().eval().requires_grad_(False)
    sites = fca.find_sites(model, "blocks.*.gate")
    forms, correct, layers = recorded(model, sites, tokens)
    other = np.roll(correct, 1, axis=0)
    masks = changes(layers, "alone")[1]
    found = variants(
        model, sites, forms, reusable(model), tokens, lambda i: correct[i], [lambda i: other[i]], masks, 10
    )
    for part in found:
        values = correct if part.variant is None else np.where(masks[part.variant], other, correct)
        full = next(iter(replay(model, sites, forms, tokens, lambda i, v=values: v[i], 10)))
        assert np.array_equal(part.nll, full.nll)


@pytest.mark.parametrize("module", [early_exit, mixture_of_depths, moe], ids=lambda m: m.__name__)
def test_maps_of_models_that_skip_are_exact(module, tokens):
    """Where the changed coefficients decide what runs, later blocks may run for other tokens."""
    torch.manual_seed(0)
    model = module.build(ARCHITECTURE | {"layers": 4})
    for parameter in model.parameters():
        if parameter.ndim >= 2:
            nn.init.normal_(parameter, std=0.3)
    model.eval().requires_grad_(False)
    sites = module.sites(model)
    forms, correct, layers = recorded(model, sites, tokens)
    other = np.roll(correct, 3, axis=0)
    for order in ORDERS:
        swapped, masks = changes(layers, order)
        base, changed = (other, correct) if swapped else (correct, other)
        arguments = (reusable(model), tokens, lambda i, b=base: b[i], [lambda i, c=changed: c[i]], masks, 4)
        for part in list(variants(model, sites, forms, *arguments)):
            values = base if part.variant is None else np.where(masks[part.variant], changed, base)
            full = list(replay(model, sites, forms, tokens, lambda i, v=values: v[i], 4))
            assert np.array_equal(part.nll, np.concatenate([b.nll for b in full])[part.inputs])


@pytest.mark.filterwarnings("ignore")  # the library's own deprecations
@pytest.mark.parametrize("name", ["mixtral", "gemma3n", "qwen3_next"])
def test_maps_of_public_families_are_exact(name):
    model = build_family(name)
    ids = np.random.default_rng(0).integers(3, 90, size=(4, 12))
    for sites in known_sites(model).values():
        forms, correct, layers = recorded(model, sites, ids)
        other = np.roll(correct, 1, axis=0)
        masks = changes(layers, "alone")[1]
        arguments = (reusable(model), ids, lambda i, c=correct: c[i], [lambda i, o=other: o[i]], masks, 4)
        for part in list(variants(model, sites, forms, *arguments)):
            values = correct if part.variant is None else np.where(masks[part.variant], other, correct)
            full = next(iter(replay(model, sites, forms, ids, lambda i, v=values: v[i], 4)))
            assert np.array_equal(part.nll, full.nll)


def test_controllers_must_stay_off(tokens, featuregate_model):
    model, sites = featuregate_model, featuregate.sites(featuregate_model)
    forms, correct, layers = recorded(model, sites, tokens)
    norm = model.norm
    inner = norm.forward
    norm.forward = lambda h: inner(h) + 0 * model.blocks[0].gate.out.weight.sum()
    with pytest.raises(ProofError, match="a controller ran"):
        list(
            variants(
                model, sites, forms, reusable(model), tokens, lambda i: correct[i], [lambda i: correct[i]],
                changes(layers, "alone")[1], 10,
            )
        )  # fmt: skip


def test_one_layer_is_a_map_of_one_row(tokens):
    torch.manual_seed(1)
    assert changes(np.zeros(4, dtype=int), "alone")[1][0].all()
    swapped, masks = changes(np.zeros(4, dtype=int), "from_bottom")
    assert swapped
    assert not masks[0].any()
