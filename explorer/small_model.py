"""A small decoder of attention alone: our own attention, with any scale, and nothing beside it.

Embedding, then for each layer x + W_O · attention(LayerNorm(x)), a last LayerNorm and a linear map
to the answers. No feed-forward layers, after Elhage et al. 2021, "A Mathematical Framework for
Transformer Circuits". Rotary positions: Su et al. 2021, "RoFormer".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from explorer.attention import Attention, AttentionSteps, attend
from explorer.masks import causal
from explorer.multihead import MultiHeadAttention

Initialisation = Literal["unit", "torch", "small"]
PositionKind = Literal["rotary", "learned"]

SMALL = 0.02
"""The standard deviation of every weight in "small", as in GPT-2."""


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a small model and how it starts. The scale is 1/√d_k unless given.

    d_k is free of d_model; a value has d_model / n_heads numbers whatever d_k is.
    """

    symbols: int
    answers: int
    length: int
    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    d_k: int = 16
    scale: float | None = None
    initialisation: Initialisation = "unit"
    positions: PositionKind = "rotary"

    def __post_init__(self) -> None:
        for name, least, most in (
            ("n_layers", 1, 4),
            ("n_heads", 1, 16),
            ("d_k", 1, 4096),
            ("d_model", 1, 1024),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name}: got {value}; it must be {least} to {most}.")
        if self.d_model % self.n_heads:
            raise ValueError(
                f"n_heads: got {self.n_heads}, which does not divide d_model = {self.d_model}."
            )
        if self.positions == "rotary" and self.d_k % 2:
            raise ValueError(f"d_k: got {self.d_k}; rotary positions need an even number.")
        if self.scale is not None and not math.isfinite(self.scale):
            raise ValueError(f"scale: got {self.scale}; it must be a finite number.")

    @property
    def used_scale(self) -> float:
        """The factor on q·k."""
        return 1 / math.sqrt(self.d_k) if self.scale is None else self.scale


def rotary(
    x: Float[Tensor, "*lead length d_k"], base: int | float = 10_000
) -> Float[Tensor, "*lead length d_k"]:
    """Each vector turned by its place: pair i of its numbers by place · base^(−2i/d_k) radians.

    The first half of the numbers is paired with the second. q·k then depends on the distance of
    the two places, not on where they stand.
    """
    length, d_k = x.shape[-2:]
    speeds = base ** (-torch.arange(0, d_k, 2, device=x.device, dtype=x.dtype) / d_k)
    angles = torch.arange(length, device=x.device, dtype=x.dtype)[:, None] * speeds
    cos, sin = angles.cos(), angles.sin()  # (length, d_k / 2)
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


class SmallModel(nn.Module):
    """The model; the seed alone decides its weights, whatever else draws random numbers."""

    def __init__(self, shape: ModelShape, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.symbols, shape.d_model)
        self.places = (
            nn.Embedding(shape.length, shape.d_model) if shape.positions == "learned" else None
        )
        self.norms = nn.ModuleList(nn.LayerNorm(shape.d_model) for _ in range(shape.n_layers))
        self.layers = nn.ModuleList(
            MultiHeadAttention(
                shape.d_model,
                shape.n_heads,
                d_k=shape.d_k,
                d_v=shape.d_model // shape.n_heads,
                seed=0,
            )
            for _ in range(shape.n_layers)
        )
        self.last_norm = nn.LayerNorm(shape.d_model)
        self.answer = nn.Linear(shape.d_model, shape.answers, bias=False)
        self._draw(seed)

    @torch.no_grad()
    def _draw(self, seed: int) -> None:
        """All weights anew, in their order, from one generator.

        "unit": variance 1/(input size), so that normalised input gives queries and keys of unit
        variance and q·k the variance d_k. "torch": nn.Linear's own, uniform in ±1/√(input size),
        which is a third of that variance, and q·k has d_k/9. "small": normal with deviation 0.02.
        Embeddings are normal with variance 1 but for "small".
        """
        generator = torch.Generator().manual_seed(seed)
        kind = self.shape.initialisation
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                drawn = torch.randn(module.weight.shape, generator=generator)
                module.weight.copy_(drawn * (SMALL if kind == "small" else 1.0))
            elif isinstance(module, nn.Linear):
                size = module.in_features**-0.5
                if kind == "torch":
                    drawn = torch.rand(module.weight.shape, generator=generator) * 2 - 1
                    module.weight.copy_(drawn * size)
                else:
                    drawn = torch.randn(module.weight.shape, generator=generator)
                    module.weight.copy_(drawn * (SMALL if kind == "small" else size))

    @property
    def attention_layers(self) -> list[MultiHeadAttention]:
        """The layers, first to last."""
        return [layer for layer in self.layers if isinstance(layer, MultiHeadAttention)]

    def forward(
        self, ids: Int[Tensor, "rows length fields"]
    ) -> tuple[Tensor, list[AttentionSteps]]:
        """The answers' logits (rows, length, answers), and each layer's attention in steps."""
        x = self._embed(ids)  # (rows, length, d_model)
        steps = []
        for norm, layer in zip(self.norms, self.attention_layers, strict=True):
            query, key, value = self._project(layer, norm(x))
            steps.append(attend(query, key, value, causal(), scale=self.shape.used_scale))
            x = x + layer.join(steps[-1].output)
        return self.answer(self.last_norm(x)), steps

    @torch.no_grad()
    def records(self, ids: Int[Tensor, "length fields"]) -> tuple[Attention, ...]:
        """Each layer's attention on one row, as the record that pages and figures read."""
        x = self._embed(ids[None])
        kept = []
        for norm, layer in zip(self.norms, self.attention_layers, strict=True):
            query, key, value = self._project(layer, norm(x))
            record = Attention(query[0], key[0], value[0], causal(), self.shape.used_scale)
            kept.append(record)
            x = x + layer.join(record.output()[None])
        return tuple(kept)

    def _embed(self, ids: Tensor) -> Tensor:
        x: Tensor = self.embedding(ids).sum(-2)
        return x if self.places is None else x + self.places.weight[: ids.shape[-2]]

    def _project(self, layer: MultiHeadAttention, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (rows, n_heads, length, size)."""
        query, key, value = layer.project(x)
        if self.places is None:
            query, key = rotary(query), rotary(key)
        return query, key, value
