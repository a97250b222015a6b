"""Attention written a second time, in NumPy and float64, and examples to compare with it.

Nothing here uses explorer's arithmetic: masks are written out cell by cell beside the rule.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from explorer import masks
from explorer.masks import Mask

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class Expected(NamedTuple):
    dots: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    output: np.ndarray
    lse: np.ndarray


def reference(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Any = True,
    *,
    scale: float | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Expected:
    """softmax(QKᵀ · scale) V in float64; a row with no key has zeros and −inf."""
    q, k, v = (t.detach().double().numpy() for t in (query, key, value))
    group = q.shape[-3] // k.shape[-3]
    heads = [h // group for h in range(q.shape[-3])]
    k, v = k[..., heads, :, :], v[..., heads, :, :]
    dots = np.einsum("...id,...jd->...ij", q, k)
    scores = dots * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.double().numpy()
    allowed = np.broadcast_to(np.asarray(allowed), scores.shape)
    top = np.where(allowed, scores, -np.inf).max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    shares = np.where(allowed, np.exp(np.minimum(scores - top, 0.0)), 0.0)
    total = shares.sum(-1, keepdims=True)
    has_key = allowed.any(-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks.double().numpy()[:, None, None] - top)
    weights = np.divide(shares, total, out=np.zeros_like(shares), where=has_key)
    with np.errstate(divide="ignore"):
        lse = np.where(has_key, top + np.log(total), -np.inf)[..., 0]
    return Expected(dots, scores, weights, weights @ v, lse)


class WrittenMask(NamedTuple):
    """A rule, and the same mask written out."""

    mask: Mask
    table: np.ndarray


def written(n_q: int, n_k: int, cell: Callable[[int, int], bool]) -> np.ndarray:
    """A mask from one decision a cell; the query's position counts from the last key back."""
    shift = n_k - n_q
    return np.array([[cell(i + shift, j) for j in range(n_k)] for i in range(n_q)], dtype=bool)


def _quietly(make: Callable[..., Mask], *arguments: Any) -> Mask:
    """beartype draws by chance which items to check, and Hypothesis objects to chance: undone."""
    before = random.getstate()
    mask = make(*arguments)
    random.setstate(before)
    return mask


@st.composite
def written_masks(draw: st.DrawFn, n_q: int, n_k: int, depth: int = 2) -> WrittenMask:
    """Any mask of the library for these lengths, combined up to two levels deep."""
    kinds = ["everything", "causal", "window", "prefix", "left", "right", "custom"]
    kind = draw(st.sampled_from(kinds + (["and", "or", "not"] * 2 if depth else [])))
    if kind in ("and", "or", "not"):
        a = draw(written_masks(n_q, n_k, depth - 1))
        if kind == "not":
            return WrittenMask(~a.mask, ~a.table)
        b = draw(written_masks(n_q, n_k, depth - 1))
        if kind == "and":
            return WrittenMask(a.mask & b.mask, a.table & b.table)
        return WrittenMask(a.mask | b.mask, a.table | b.table)
    if kind == "causal":
        return WrittenMask(masks.causal(), written(n_q, n_k, lambda i, j: j <= i))
    if kind == "window":
        w = draw(st.integers(1, n_k + 2))
        table = written(n_q, n_k, lambda i, j: i - w < j <= i)
        return WrittenMask(masks.sliding_window(w), table)
    if kind == "prefix":
        p = draw(st.integers(0, n_k + 2))
        return WrittenMask(masks.prefix(p), written(n_q, n_k, lambda i, j: j < p or j <= i))
    if kind in ("left", "right"):
        real = draw(st.integers(0, n_k))
        right = written(n_q, n_k, lambda i, j: j < real)
        mask = _quietly(masks.padding, real, kind)
        return WrittenMask(mask, right if kind == "right" else right[:, ::-1].copy())
    if kind == "custom":
        generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
        cells = torch.rand(n_q, n_k, generator=generator) < 0.6
        return WrittenMask(_quietly(masks.custom, cells), cells.numpy())
    return WrittenMask(masks.everything(), np.ones((n_q, n_k), dtype=bool))


class Example(NamedTuple):
    """Inputs of attention: tensors, the mask twice, and the optional terms as keywords."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Mask | None
    allowed: np.ndarray
    terms: dict[str, Any]

    def expected(self) -> Expected:
        return reference(self.query, self.key, self.value, self.allowed, **self.terms)

    def tolerance(self) -> float:
        """How far a weight may be off: the rounding of a score moves a weight in proportion.

        |q||k| bounds each score, and the arithmetic is float32 or, for float64, float64.
        """
        eps = torch.finfo(torch.promote_types(self.query.dtype, torch.float32)).eps
        norms = [float(t.double().norm(dim=-1).max()) for t in (self.query, self.key)]
        scale = abs(self.terms.get("scale", self.query.shape[-1] ** -0.5))
        extra = [self.terms[name] for name in ("bias", "sinks") if name in self.terms]
        return eps * (
            16 + 8 * norms[0] * norms[1] * scale + sum(float(t.abs().max()) for t in extra)
        )

    def output_tolerance(self) -> float:
        """The weights' error over all values, and the rounding to the values' dtype."""
        largest = float(self.value.abs().double().max())
        rounding = 2 * torch.finfo(self.value.dtype).eps
        return largest * (rounding + self.tolerance() * self.key.shape[-2])


@st.composite
def examples(
    draw: st.DrawFn,
    *,
    leads: tuple[tuple[int, ...], ...] = ((),),
    longest: int = 9,
    dtypes: tuple[torch.dtype, ...] = DTYPES,
    terms: bool = True,
) -> Example:
    """Attention of any shape: leading axes, n_q ≠ n_k, d_v ≠ d_k, grouped heads, every term."""
    lead = draw(st.sampled_from(leads))
    n_q, n_k = draw(st.integers(1, longest)), draw(st.integers(1, longest))
    n_kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    d_k, d_v = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    n_heads, dtype = n_kv_heads * group, draw(st.sampled_from(dtypes))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    std = draw(st.sampled_from([0.1, 1.0, 4.0]))

    def normal(*shape: int) -> Tensor:
        return (torch.randn(shape, generator=generator) * std).to(dtype)

    query = normal(*lead, n_heads, n_q, d_k)
    key, value = (normal(*lead, n_kv_heads, n_k, d) for d in (d_k, d_v))
    mask, allowed = None, np.ones((n_q, n_k), dtype=bool)
    if draw(st.sampled_from([True, True, False])):
        mask, allowed = draw(written_masks(n_q, n_k))
    chosen: dict[str, Any] = {}
    terms = terms and draw(st.booleans())  # half of the examples have none of them
    if terms and draw(st.booleans()):
        chosen["scale"] = draw(st.sampled_from([1.0, 0.3, -0.5]))
    if terms and draw(st.booleans()):
        chosen["bias"] = normal(draw(st.sampled_from([1, n_heads])), n_q, n_k)
    if terms and draw(st.booleans()):
        chosen["softcap"] = draw(st.sampled_from([0.5, 20.0]))
    if terms and draw(st.booleans()):
        chosen["sinks"] = normal(n_heads)
    return Example(query, key, value, mask, allowed, chosen)
