"""Controllers of public architectures on tiny random weights: exact, isolated, effective."""

import numpy as np
import pytest
import torch
import transformers
from public_models import MODELS, build
from torch import nn

import fca
from fca.controllers.choice import choose
from fca.controllers.expert_order import order_of, with_order
from fca.controllers.families import FAMILIES, known_sites, select, static_parameters
from fca.controllers.routing import keep_largest
from fca.errors import FcaError
from fca.models.huggingface import load

#: model -> the families found in it
EXPECTED = {
    "mixtral": {"router"},
    "olmoe": {"router"},
    "qwen2_moe": {"router", "shared_expert_gate"},
    "qwen3_moe": {"router"},
    "qwen3_next": {"router", "shared_expert_gate", "attention_gate", "delta_net"},
    "gpt_oss": {"router"},
    "granitemoe": {"router"},
    "phimoe": {"router"},
    "deepseek_v2": {"router"},
    "deepseek_v3": {"router"},
    "deepseek_v4": {"router", "hyper_connection"},
    "llama4": {"llama4_router"},
    "longcat": {"router"},
    "zaya": {"zaya_router"},
    "dbrx": {"dbrx_router"},
    "jetmoe": {"jetmoe_router"},
    "gemma3n": {"altup", "altup_prediction", "altup_correction"},
    "mamba": {"mamba"},
    "rwkv": {"rwkv"},
    "llama": {"swiglu"},
}
STILL_RUNS = {"attention_gate"}  # a slice of a projection that is content too
NO_EFFECT = {("deepseek_v4", "router")}  # hash routing: the experts do not depend on the input's text


@pytest.fixture
def ids():
    return np.random.default_rng(0).integers(3, 90, size=(4, 12))


@pytest.mark.filterwarnings("ignore")  # the library's own deprecations
@pytest.mark.parametrize("name", MODELS)
def test_family(name, ids):
    model = build(name)
    found = known_sites(model)
    assert set(found) == EXPECTED[name]
    for family, sites in found.items():
        record = fca.capture(model, sites, ids)
        same = fca.replay(model, sites, ids, fca.correct(record))
        assert same.attrs["logits_sha256"] == record.attrs["logits_sha256"], family
        assert same.attrs["controller_runs"] == 0
        assert bool(same.attrs["still_running"]) == (family in STILL_RUNS)
        other = fca.replay(model, sites, ids, fca.cross_input(record))
        if (name, family) not in NO_EFFECT:
            assert other.attrs["logits_sha256"] != record.attrs["logits_sha256"], family
        assert np.isfinite(
            fca.replay(model, sites, ids, fca.static(record, "layer_mean", oracle=True))["nll"]
        ).all()


def test_every_family_is_tested_or_for_vision():
    tested = set().union(*EXPECTED.values()) | {"switch_router", "attention_gate_proj"}
    assert {f.name for f in FAMILIES} - tested == {"squeeze_excite", "cond_conv", "selective_kernel"}


class Seq2Seq(nn.Module):
    """Switch translates; reading the text and writing it again makes it a model of tokens."""

    def __init__(self):
        super().__init__()
        config = transformers.SwitchTransformersConfig(
            vocab_size=100, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_decoder_layers=2, num_heads=4,
            num_experts=4, expert_capacity=4, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1,
            decoder_start_token_id=0, use_cache=False,
        )  # fmt: skip
        self.inner = transformers.SwitchTransformersForConditionalGeneration(config)
        self.config = config

    def forward(self, tokens):
        return self.inner(input_ids=tokens, decoder_input_ids=tokens).logits


@pytest.mark.filterwarnings("ignore")
def test_switch_drops_tokens_over_capacity_and_replays_exactly(ids):
    torch.manual_seed(0)
    model = Seq2Seq().eval()
    for parameter in model.parameters():
        if parameter.ndim >= 2:
            nn.init.normal_(parameter, std=0.3)
    sites = select(model, "auto")
    assert all(type(s).__name__ == "SwitchRoute" for s in sites)
    record = fca.capture(model, sites, ids)
    per_layer = record["coefficients"].values.reshape(4, 12, len(sites), 4)
    assert set(np.unique((per_layer != 0).sum(-1))) == {0, 1}
    same = fca.replay(model, sites, ids, fca.correct(record))
    assert same.attrs["logits_sha256"] == record.attrs["logits_sha256"]
    other = fca.replay(model, sites, ids, fca.cross_input(record))
    assert other.attrs["logits_sha256"] != record.attrs["logits_sha256"]


class OwnGate(nn.Module):
    """A gate of its own Linear in front of the attention output."""

    def __init__(self):
        super().__init__()
        self.self_attn = nn.ModuleDict({"gate_proj": nn.Linear(8, 1), "value": nn.Linear(8, 8)})
        self.embedding, self.out = nn.Embedding(100, 8), nn.Linear(8, 100)

    def forward(self, tokens):
        h = self.embedding(tokens)
        return self.out(torch.sigmoid(self.self_attn["gate_proj"](h)) * self.self_attn["value"](h))


def test_attention_gate_of_its_own(ids):
    model = OwnGate().eval()
    record = fca.capture(model, select(model, "attention_gate_proj"), ids)
    assert record["coefficients"].shape == (4, 12, 1)


# ------------------------------------------------------------------ routing


def test_projection_keeps_what_a_router_emits_bit_for_bit(rng):
    weights = torch.zeros(50, 6)
    for row in weights:
        row[torch.randperm(6)[:2]] = torch.rand(2) + 0.1
    assert torch.equal(keep_largest(weights, 2, 1.0), weights)
    assert torch.equal(keep_largest(weights, 2, None), weights)


def test_projection_of_a_mean_is_a_static_top_k():
    mean = torch.tensor([[0.1, 0.4, 0.3, 0.2]])
    assert torch.allclose(keep_largest(mean, 2, 1.0), torch.tensor([[0.0, 4 / 7, 3 / 7, 0.0]]))
    assert torch.equal(keep_largest(mean, 2, None), torch.tensor([[0.0, 0.4, 0.3, 0.0]]))
    equal = torch.full((1, 4), 0.25)
    assert keep_largest(equal, 2, None).nonzero()[:, 1].tolist() == [0, 1]


@pytest.mark.parametrize(("experts", "k"), [(4, 2), (6, 2), (8, 3), (16, 4), (64, 8), (6, 1)])
def test_the_order_of_experts_travels_in_the_signs_of_zeros(experts, k):
    torch.manual_seed(0)
    order = torch.stack([torch.randperm(experts)[:k] for _ in range(300)])
    plain = torch.zeros(300, experts).scatter(-1, order, torch.rand(300, k) + 0.1)
    marked = with_order(plain, order)
    assert torch.equal(marked, plain)  # -0 equals 0
    assert torch.equal(order_of(marked, k), order)
    assert torch.equal(order_of(torch.from_numpy(marked.numpy()), k), order)


def test_soft_replay_is_the_dense_mixture(ids):
    model = build("mixtral")
    hard = choose(model, {"family": "router"})
    soft = choose(model, {"family": "router", "soft": True})
    record = fca.capture(model, hard, ids)
    assert not np.array_equal(
        fca.replay(model, hard, ids, fca.static(record, "layer_mean", oracle=True))["nll"],
        fca.replay(model, soft, ids, fca.static(record, "layer_mean", oracle=True))["nll"],
    )
    exact = fca.replay(model, soft, ids, fca.correct(record))
    assert np.allclose(exact["nll"], record["nll"], atol=1e-5)


def test_expert_shuffle_permutes_within_layers(ids):
    model = build("mixtral")
    record = fca.capture(model, select(model, "router"), ids)
    shuffled = fca.reassign(record, "expert_shuffle")
    for layer in (0, 1):
        here = record["layer"].values == layer
        before, after = record["coefficients"].values[..., here], shuffled.values[..., here]
        assert np.array_equal(np.sort(before, -1), np.sort(after, -1))
        assert not np.array_equal(before, after)
    assert record["expert"].values.tolist() == list(range(6)) * 2


# ------------------------------------------------------- execution, counted


def counts(name, ids):
    from fca.frozen.loss import run
    from fca.machine.counting import counted_blocks, experts_executed, flops

    model, tokens = build(name), torch.from_numpy(ids)
    with torch.inference_mode():
        with counted_blocks(model) as blocks:
            run(model, tokens)
        return blocks, experts_executed(model, flops(lambda: run(model, tokens)), ids.size)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "present", "executed"),
    [
        ("mixtral", 6, 2),  # chosen experts only
        ("qwen3_moe", 6, 2),
        ("granitemoe", 6, 2),
        ("llama4", 6, 6),  # every expert runs on every token
        ("zaya", 6, 1),  # the skip class runs expert 0 with weight 0
    ],
)
def test_experts_are_counted_by_what_runs(name, present, executed, ids):
    blocks, experts = counts(name, ids)
    assert set(blocks.values()) == {ids.size}
    assert experts == (present, pytest.approx(executed))


# ------------------------------------------------------------------ errors


def test_static_models_have_nothing_to_audit():
    from fca.architectures import rezero

    model = rezero.build({"vocabulary": 50, "length": 16, "layers": 2, "width": 16, "heads": 2})
    assert static_parameters(model) == ["blocks.0.resweight", "blocks.1.resweight"]
    with pytest.raises(FcaError, match="parameters, the same for every input: nothing to audit"):
        select(model, "auto")


def test_unknown_families_are_answered_with_the_known_ones():
    with pytest.raises(FcaError, match="no such controller in MixtralForCausalLM; found router"):
        select(build("mixtral"), "routers")


@pytest.mark.parametrize(("side", "column"), [("left", 0), ("right", -1)])
def test_padded_inputs_are_refused(side, column, ids):
    model = build("llama")
    padded = ids.copy()
    padded[2, column] = 0
    with pytest.raises(FcaError, match=f"input 2 is padded on the {side}"):
        fca.capture(model, select(model, "swiglu"), padded)


class Coupled(nn.Module):
    """A gate that sees the mean of the batch."""

    def __init__(self):
        super().__init__()
        self.embedding, self.gate, self.out = nn.Embedding(100, 8), CoupledGate(), nn.Linear(8, 100)

    def forward(self, tokens):
        h = self.embedding(tokens)
        return self.out(self.gate(h) * h)


class CoupledGate(nn.Module):
    def forward(self, h):
        return torch.sigmoid(h.sum(-1, keepdim=True) - h.sum(-1, keepdim=True).mean(0))


def test_a_site_that_depends_on_the_batch_is_refused(ids):
    model = Coupled().eval()
    with pytest.raises(FcaError, match="'gate': its output for an input depends on the others in the batch"):
        fca.capture(model, fca.find_sites(model, "gate"), ids)


class Recurrent(nn.Module):
    """Keeps a function that takes the gate as an argument, as linear attention does."""

    def __init__(self):
        super().__init__()
        self.embedding, self.rate, self.out = nn.Embedding(100, 8), nn.Linear(8, 8), nn.Linear(8, 100)
        self.scan = scan

    def forward(self, tokens):
        h = self.embedding(tokens)
        return self.out(self.scan(h, decay=torch.sigmoid(self.rate(h))))


def scan(value, decay):
    state, states = torch.zeros_like(value[:, 0]), []
    for t in range(value.shape[1]):
        state = decay[:, t] * state + value[:, t]
        states.append(state)
    return torch.stack(states, dim=1)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixer = Recurrent()

    def forward(self, tokens):
        return self.mixer(tokens)


def test_an_argument_of_a_function_can_be_the_coefficient(ids):
    model = Layers().eval()
    sites = choose(model, {"pattern": "mixer", "method": "scan", "argument": "decay"})
    record = fca.capture(model, sites, ids)
    assert record["coefficients"].shape == (4, 12, 8)
    same = fca.replay(model, sites, ids, fca.correct(record))
    assert same.attrs["logits_sha256"] == record.attrs["logits_sha256"]
    assert same.attrs["still_running"] == ["mixer"]
    assert float(
        fca.replay(model, sites, ids, fca.static(record, "global_mean", oracle=True))["nll"].mean()
    ) != float(record["nll"].mean())
    with pytest.raises(FcaError, match="scan has no argument 'gate'; it has value, decay"):
        fca.capture(model, choose(model, {"pattern": "mixer", "method": "scan", "argument": "gate"}), ids)


def test_hugging_face_models_load_from_a_folder(tmp_path, ids):
    saved = build("mixtral")
    saved.save_pretrained(tmp_path)
    model = load(str(tmp_path), torch.float32, {}).eval()
    assert model.config.use_cache is False
    sites = choose(model, {"family": "auto"})
    record = fca.capture(model, sites, ids)
    again = fca.replay(model, sites, ids, fca.correct(record))
    assert again.attrs["logits_sha256"] == record.attrs["logits_sha256"]
    with pytest.raises(FcaError, match="cannot be loaded"):
        load(str(tmp_path / "missing"), torch.float32, {})


def test_positions_choose_a_slice(ids):
    model = build("llama")
    sites = choose(model, {"family": "swiglu", "positions": 4})
    assert sites[0].positions == (0, 12, 24, 36)
    record = fca.capture(model, sites, ids)
    assert record["coefficients"].shape == (4, 12, 8)
    same = fca.replay(model, sites, ids, fca.correct(record))
    assert same.attrs["logits_sha256"] == record.attrs["logits_sha256"]
    with pytest.raises(FcaError, match="100 of the 48 positions"):
        choose(model, {"family": "swiglu", "positions": 100})


class Wavering(nn.Module):
    """A gate whose width changes after the first batch."""

    def __init__(self):
        super().__init__()
        self.embedding, self.gate, self.out = nn.Embedding(100, 8), WaveringGate(), nn.Linear(8, 100)

    def forward(self, tokens):
        h = self.embedding(tokens)
        return self.out(h * self.gate(h).mean(-1, keepdim=True))


class WaveringGate(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, h):
        self.calls += 1
        return torch.sigmoid(h[..., : 2 if self.calls > 2 else 1])


def test_a_site_that_changes_shape_is_refused(ids):
    model = Wavering().eval()
    with pytest.raises(FcaError, match="site 'gate': its output changed shape between batches"):
        fca.capture(model, fca.find_sites(model, "gate"), ids, batch_size=2)
