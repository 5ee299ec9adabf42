"""In: the order in which a router names its experts. Out: the same, hidden in the signs of zeros.

A router returns its k experts in some order. The order is no coefficient, but it decides in which
row of a matrix product a token lands, and with that the last bit of the result. So that a replay
can be exact, the order travels with the weights: as a number, written in binary into the signs of
the weights that are 0. Those stay 0 in every sum, mean and comparison.
"""

import math

import torch
from torch import Tensor


def bits_needed(k: int) -> int:
    return math.ceil(math.log2(math.factorial(k)))


def with_order(dense: Tensor, experts: Tensor) -> Tensor:
    """dense [row, expert] weights, experts [row, k] in the router's order: dense, zeros signed.

    Unchanged where there are too few zeros to hold the order.
    """
    k = experts.shape[-1]
    if dense.shape[-1] - k < bits_needed(k) or k == 1:
        return dense
    number = torch.zeros(len(experts), dtype=torch.long, device=dense.device)
    for slot in range(k):
        smaller = (experts[:, slot + 1 :] < experts[:, slot : slot + 1]).sum(-1)
        number += smaller * math.factorial(k - 1 - slot)
    free = torch.ones_like(dense, dtype=torch.bool).scatter(-1, experts, False)
    place = (free.cumsum(-1) - 1).clamp(0, 62)
    set_bit = free & ((number[:, None] >> place) & 1).bool()
    return torch.where(set_bit, torch.copysign(dense, -torch.ones_like(dense)), dense)


def order_of(dense: Tensor, k: int) -> Tensor:
    """The k experts of each row, [row, k]: in the recorded order, else by their number."""
    zero = dense == 0
    experts = zero.to(torch.uint8).sort(dim=-1, stable=True).indices[:, :k].sort(dim=-1).values
    if k == 1:
        return experts
    place = (zero.cumsum(-1) - 1).clamp(0, 62)
    used = zero & (place < bits_needed(k)) & torch.signbit(dense)
    number = (used.long() << place).sum(-1).clamp_max(math.factorial(k) - 1)
    ordered = []
    for slot in range(k):
        weight = math.factorial(k - 1 - slot)
        digit = number // weight
        number = number % weight
        ordered.append(experts.gather(-1, digit[:, None]))
        left = torch.arange(experts.shape[-1], device=dense.device) != digit[:, None]
        experts = experts[left].view(len(dense), -1)
    return torch.cat(ordered, dim=-1)
