"""Small random models of real families, and inputs for them: nothing is downloaded.

Their weights are wider than a fresh model's, so that attention is far from uniform and a wrong
scale, mask or bias shows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, PreTrainedModel

from explorer.tokens import Tokens

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SMALL_GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64}
SMALL_SEQ2SEQ: dict[str, Any] = {
    "vocab_size": 64,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": 2,
}
SMALL_T5: dict[str, Any] = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
SMALL_VIT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 4,
}


def small_model(
    model_type: str,
    settings: Mapping[str, Any],
    attention: str = "eager",
    model_class: Any = AutoModel,
    seed: int = 0,
) -> PreTrainedModel:
    """A random model in eval mode; the same arguments and seed give the same weights."""
    config = AutoConfig.for_model(model_type, **settings)
    torch.manual_seed(seed)
    model = model_class.from_config(config, attn_implementation=attention)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.2, generator=generator)
            elif name.endswith(("bias", "sinks")):
                parameter.normal_(0, 0.3, generator=generator)
    ready: PreTrainedModel = model.eval()
    return ready


def ids(batch: int, length: int, seed: int = 0) -> Tensor:
    """Random ids that are no special tokens, (batch, length)."""
    return torch.randint(5, 60, (batch, length), generator=torch.Generator().manual_seed(seed))


def padded(lengths: Sequence[int], side: str, pad_id: int = 0, seed: int = 0) -> dict[str, Tensor]:
    """Random ids of these lengths, padded on one side to the longest, with their mask."""
    width = max(lengths)
    input_ids = ids(len(lengths), width, seed)
    mask = torch.zeros_like(input_ids)
    for row, length in enumerate(lengths):
        start = width - length if side == "left" else 0
        mask[row, start : start + length] = 1
    return {"input_ids": input_ids.where(mask == 1, pad_id), "attention_mask": mask}


def tokens_of(mask: Tensor) -> list[Tokens]:
    """Tokens for each row of an attention mask, its zeros marked as padding."""
    return [
        dataclasses.replace(
            Tokens.plain([f"t{at}" for at in range(len(row))]),
            padding=tuple(not real for real in row),
        )
        for row in mask.bool().tolist()
    ]
