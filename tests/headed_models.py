"""Small random models for the pages, with a head each, or with outputs that are no numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from tests.page_models import BYTES, byte_tokenizer
from tests.small_models import SMALL, SMALL_GROUPED, small_model

WITH_MASK = {**BYTES, "vocab_size": 260}
BERT = {**SMALL, **WITH_MASK, "num_hidden_layers": 2, "max_position_embeddings": 128}
LABELS = {
    "id2label": {0: "bad", 1: "fair", 2: "good"},
    "label2id": {"bad": 0, "fair": 1, "good": 2},
}

KINDS: Mapping[str, tuple[str, Mapping[str, Any], Any]] = {
    "writer": (
        "llama",
        {**SMALL_GROUPED, **WITH_MASK, "max_position_embeddings": 128},
        AutoModelForCausalLM,
    ),
    "filler": ("bert", BERT, AutoModelForMaskedLM),
    "judge": ("bert", {**BERT, **LABELS}, AutoModelForSequenceClassification),
    "tagger": ("bert", {**BERT, **LABELS}, AutoModelForTokenClassification),
    "not-numbers": ("bert", BERT, AutoModel),
}


def save_headed_models(root: Path) -> Path:
    """Each kind as a folder of its own in `root`."""
    for name, (model_type, settings, model_class) in KINDS.items():
        model = small_model(model_type, settings, model_class=model_class)
        if name == "not-numbers":
            with torch.no_grad():
                model.encoder.layer[1].output.LayerNorm.weight[:] = torch.nan
        model.save_pretrained(root / name)
        tokenizer = byte_tokenizer()
        tokenizer.add_special_tokens({"mask_token": "<mask>"})
        tokenizer.save_pretrained(root / name)
    return root
