"""Small random models with a tokenizer of bytes, saved to folders that the pages list."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoModel, PreTrainedTokenizerFast

from tests.small_models import SMALL, SMALL_GROUPED, SMALL_SEQ2SEQ, SMALL_T5, small_model

BYTES: dict[str, Any] = {"vocab_size": 259, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LARGE = {**SMALL, **BYTES}
GROUPED = {**SMALL_GROUPED, **BYTES, "max_position_embeddings": 128}

KINDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "twelve-layers": ("bert", {**LARGE, "num_hidden_layers": 12, "num_attention_heads": 16}),
    "one-head": ("bert", {**LARGE, "num_hidden_layers": 1, "num_attention_heads": 1}),
    "causal": ("gpt2", {**BYTES, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 24}),
    "window": ("mistral", {**GROUPED, "sliding_window": 3}),
    "sinks": (
        "gpt_oss",
        {**GROUPED, "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 128},
    ),
    "two-stacks": (
        "t5",
        {**SMALL_T5, **BYTES},
    ),
    "denoiser": ("bart", {**SMALL_SEQ2SEQ, **BYTES}),
    "off-interface": ("bloom", {**BYTES, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "no-numbers": ("bert", LARGE),
}


def save_page_models(root: Path) -> Path:
    """Every kind as a folder of its own in `root`, and one without a tokenizer."""
    for name, (model_type, settings) in KINDS.items():
        model = small_model(model_type, settings, model_class=AutoModel)
        if name == "no-numbers":
            with torch.no_grad():
                model.encoder.layer[1].attention.self.query.weight[:] = torch.nan
        model.save_pretrained(root / name)
        byte_tokenizer().save_pretrained(root / name)
    small_model("bert", LARGE).save_pretrained(root / "no-tokenizer")
    (root / "broken").mkdir()
    (root / "broken" / "config.json").write_text("{", encoding="utf-8")
    return root


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each byte, and a start token."""
    pieces = ["<pad>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    start = [("<s>", 1)]
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=start)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
