"""What attention accepts: shapes and numbers checked, with a sentence that says what would fit."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float | None,
    bias: Tensor | None,
    softcap: float | None,
    sinks: Tensor | None,
    on_masked_row: str,
) -> None:
    """Raises ValueError naming the argument, its shape and a shape that would work."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim < 3:
            raise ValueError(
                f"{name}: got the shape {_shape(tensor)}; "
                "it needs (..., heads, positions, size), so at least three axes."
            )
        if not tensor.is_floating_point():
            raise ValueError(f"{name}: got {tensor.dtype}; attention needs floating point numbers.")
    lead, (n_heads, n_q, d_k) = query.shape[:-3], query.shape[-3:]
    n_kv_heads, n_k, _ = key.shape[-3:]
    if n_heads == 0:
        raise ValueError(f"query: got the shape {_shape(query)}; it needs at least one head.")
    if n_q == 0:
        raise ValueError(f"query: got the shape {_shape(query)}; it needs at least one query.")
    if n_k == 0:
        raise ValueError(f"key: got the shape {_shape(key)}; it needs at least one key.")
    if d_k == 0:
        raise ValueError(f"query: got the shape {_shape(query)}; d_k must be at least 1.")
    if key.shape[:-3] != lead:
        raise ValueError(
            f"key: got the shape {_shape(key)}, but its leading axes must be "
            f"those of query {_shape(query)}: {(*lead, *key.shape[-3:])}."
        )
    if key.shape[-1] != d_k:
        raise ValueError(
            f"key: got d_k = {key.shape[-1]} in {_shape(key)}, but query has d_k = {d_k} in "
            f"{_shape(query)}; a dot product needs {(*key.shape[:-1], d_k)}."
        )
    if n_kv_heads == 0 or n_heads % n_kv_heads:
        raise ValueError(
            f"key: got {n_kv_heads} key/value heads in {_shape(key)}, but the {n_heads} query "
            f"heads in {_shape(query)} must be a multiple of them: "
            f"{' or '.join(str(n) for n in range(1, n_heads + 1) if n_heads % n == 0)}."
        )
    if value.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            f"value: got the shape {_shape(value)}, but there must be one value for each key "
            f"{_shape(key)}: {(*key.shape[:-1], value.shape[-1])}."
        )
    for name, tensor in (("key", key), ("value", value)):
        if tensor.dtype != query.dtype or tensor.device != query.device:
            raise ValueError(
                f"{name}: got {tensor.dtype} on {tensor.device}, but query is {query.dtype} "
                f"on {query.device}; they must be the same."
            )
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale: got {scale}; it must be a finite number, such as 1/√d_k.")
    if softcap is not None and not (math.isfinite(softcap) and softcap > 0):
        raise ValueError(f"softcap: got {softcap}; it must be a finite number above 0.")
    if bias is not None:
        _fits("bias", bias, (*lead, n_heads, n_q, n_k))
    if sinks is not None and sinks.shape != (n_heads,):
        raise ValueError(
            f"sinks: got the shape {_shape(sinks)}; one score for each head is ({n_heads},)."
        )
    if on_masked_row not in ("error", "zero"):
        raise ValueError(f'on_masked_row: got "{on_masked_row}"; it is "error" or "zero".')


def check_finite(**tensors: Tensor | None) -> None:
    """Raises ValueError naming the first argument that holds NaN or infinity, and where."""
    for name, tensor in tensors.items():
        if tensor is None or bool(torch.isfinite(tensor).all()):
            continue
        bad = (~torch.isfinite(tensor)).nonzero()
        at = tuple(bad[0].tolist())
        raise ValueError(
            f"{name}: {len(bad)} of its {tensor.numel()} numbers are NaN or infinite, the first "
            f"at {at} in the shape {_shape(tensor)}. Attention needs finite numbers; "
            "to forbid a key use the mask."
        )


def fitted_mask(mask: Tensor, scores: Tensor) -> Tensor:
    """A bool mask expanded to the shape of the scores; ValueError where it does not fit."""
    if mask.dtype != torch.bool:
        raise ValueError(
            f"mask: got {mask.dtype}; a mask is bool, True where the query may use the key."
        )
    _fits("mask", mask, tuple(scores.shape))
    return mask.to(scores.device).expand(scores.shape)


def _fits(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    try:
        fits = torch.broadcast_shapes(tensor.shape, shape) == shape  # type: ignore[no-untyped-call]
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name}: got the shape {_shape(tensor)}, which does not fit the scores {shape} "
            f"(…, heads, queries, keys). {shape[-2:]} or {shape} would."
        )


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
