"""Our attention against torch's own: F.scaled_dot_product_attention and nn.MultiheadAttention."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from torch import nn

from explorer.attention import Attention, attend
from explorer.masks import Mask, causal, custom, padding
from explorer.multihead import MultiHeadAttention
from tests.reference import Example, examples

TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-4}


@given(examples(leads=((), (2,), (2, 3)), dtypes=(torch.float64, torch.float32), terms=False))
def test_attend_equals_scaled_dot_product_attention(example: Example) -> None:
    query, key, value, mask, allowed, _ = example
    assume(bool(allowed.any(-1).all()))  # torch has its own idea of a row without a key
    ours = attend(query, key, value, mask).output
    theirs = F.scaled_dot_product_attention(
        query, key, value, attn_mask=torch.from_numpy(allowed), enable_gqa=True
    )
    tolerance = TOLERANCE[query.dtype]
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@given(examples(dtypes=(torch.float64, torch.float32), terms=False))
def test_the_records_outputs_equal_scaled_dot_product_attention(example: Example) -> None:
    query, key, value, mask, allowed, _ = example
    assume(bool(allowed.any(-1).all()))
    theirs = F.scaled_dot_product_attention(
        query, key, value, attn_mask=torch.from_numpy(allowed), scale=0.7, enable_gqa=True
    )
    record = Attention(query, key, value, mask, scale=0.7)
    tolerance = TOLERANCE[query.dtype]
    for ours in (record.output(), record.with_row_lse()[1], record.weights_and_output()[1]):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("d", [1, 7, 64, 300])
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_fused_pass_equals_the_definition_whatever_the_layout(d: int, is_causal: bool) -> None:
    """Projections come as views: (n, heads · d) split and transposed, and worse."""
    n, heads = 37, 3
    layouts = [
        torch.randn(3, n, heads * d).unflatten(-1, (heads, d)).transpose(1, 2),
        torch.randn(3, d, n, heads).transpose(1, 3),  # the last axis is not adjacent
        torch.randn(3, 1, n, d).expand(3, heads, n, d),
        torch.randn(3, heads, n, 2 * d)[..., ::2],
    ]
    for tensors in layouts:
        record = Attention(*tensors, causal() if is_causal else None)
        kept, output = record.with_row_lse()
        steps = record.steps()
        torch.testing.assert_close(output, steps.output, rtol=1e-4, atol=1e-5)
        lse = torch.logsumexp(steps.masked_scores, -1)
        torch.testing.assert_close(kept.row_lse, lse, rtol=1e-5, atol=1e-5)


def test_the_fused_pass_knows_the_causal_rule_and_not_its_name() -> None:
    impostor = Mask("causal", lambda q, k, n_q, n_k: k >= q)
    record = Attention(*torch.randn(3, 2, 6, 4), impostor)
    torch.testing.assert_close(record.with_row_lse()[1], record.steps().output)


def copied(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """torch's own layer with our weights."""
    theirs = nn.MultiheadAttention(ours.d_model, ours.n_heads, bias=False, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight]))
        theirs.out_proj.weight.copy_(ours.W_O.weight)
    return theirs


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("rule", [None, causal(), padding(4), ~custom(torch.eye(5, 5).bool())])
@pytest.mark.parametrize("n_heads", [1, 3, 12])
def test_multi_head_attention_equals_torchs_with_the_same_weights(
    n_heads: int, rule: Mask | None, cross: bool
) -> None:
    ours = MultiHeadAttention(24, n_heads, seed=1).double()
    theirs = copied(ours).double()
    x = torch.randn(5, 24, dtype=torch.float64)
    context = torch.randn(5, 24, dtype=torch.float64) if cross else x
    forbidden = None if rule is None else ~rule.block(5, 5)
    output, weights = theirs(
        x[None], context[None], context[None], attn_mask=forbidden, average_attn_weights=False
    )
    record = ours.attention(x, context, rule)
    close = {"rtol": 1e-11, "atol": 1e-12}
    torch.testing.assert_close(record.weights(), weights[0].detach(), **close)
    torch.testing.assert_close(ours(x, context, rule), output[0], **close)
    torch.testing.assert_close(ours(x[None], context[None], rule), output, **close)
