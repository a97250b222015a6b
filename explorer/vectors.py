"""Texts as vectors, a row for each token: random, or a model's embeddings or hidden states."""

from __future__ import annotations

import hashlib
import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from explorer.models import Encoded, LoadedModel, ModelError, TextError, memory_errors
from explorer.spreading import turn
from explorer.tokens import Tokens


def words(text: str, most: int = 64) -> Tokens:
    """The text's words as tokens, each with its own number; equal words share it.

    Raises TextError for text without a word, or with more than `most`.
    """
    found = text.split()
    if not found:
        raise TextError("There is no word here yet. Please type some text.")
    if len(found) > most:
        raise TextError(f"{len(found)} words are too many to read here. Use at most {most}.")
    return Tokens.plain(found)


def random_embeddings(
    tokens: Tokens, d_model: int, seed: int = 0, positions: bool = True
) -> Float[Tensor, "length d_model"]:
    """A vector of independent normal numbers for each token, the same for the same text.

    With positions, sinusoids are added and the sum is brought back to a mean square of about 1.
    """
    known: dict[str, Tensor] = {}
    for text in tokens.texts:
        if text not in known:
            # A word's vector depends on the word and the seed only, not on its neighbours.
            generator = torch.Generator().manual_seed(_number(f"{seed} {text}"))
            known[text] = torch.randn(d_model, generator=generator)
    x = torch.stack([known[text] for text in tokens.texts])
    if positions:
        # A sinusoid's mean square is 1/2, so the sum has 3/2.
        x = (x + sinusoidal_positions(len(tokens), d_model)) / math.sqrt(1.5)
    return x


def sinusoidal_positions(length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """Sines and cosines of wavelengths from 2π to 10000·2π: Vaswani et al. 2017, section 3.5."""
    position = torch.arange(length, dtype=torch.float32)[:, None]
    pair = torch.arange(d_model)[None, :] // 2
    angle = position / 10_000 ** (2 * pair / d_model)
    even = torch.arange(d_model) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos())


@torch.no_grad()
def token_embeddings(loaded: LoadedModel, encoded: Encoded) -> Float[Tensor, "length d_model"]:
    """The model's own vector of each token, before any layer, normalised."""
    with memory_errors():
        table = loaded.model.get_input_embeddings()
        vectors = table(encoded.inputs["input_ids"].to(loaded.device))[0]
    return normalised(vectors)


@torch.no_grad()
def hidden_states(
    loaded: LoadedModel, encoded: Encoded, layer: int
) -> Float[Tensor, "length d_model"]:
    """What enters the model's layer with this number (0: the embeddings), normalised.

    Raises ModelError where the model does not hand them out, ValueError for another layer.
    """
    inputs = {name: tensor.to(loaded.device) for name, tensor in encoded.inputs.items()}
    with memory_errors(), turn(loaded.model):
        outputs = loaded.model(**inputs, output_hidden_states=True)
    states = getattr(outputs, "hidden_states", None)
    if states is None:
        states = getattr(outputs, "encoder_hidden_states", None)
    if not states:
        raise ModelError(f"{loaded.title} does not hand out its hidden states. Choose embeddings.")
    if not 0 <= layer < len(states):
        raise ValueError(f"layer: got {layer}, but there are states 0 to {len(states) - 1}.")
    return normalised(states[layer][0])


def normalised(vectors: Tensor) -> Float[Tensor, "length d_model"]:
    """Each vector with mean 0 and variance 1, in float32 on the CPU, as a layer norm gives it.

    Models' raw embeddings are small; projected as they are, all scores would be near 0.
    """
    x = vectors.float().cpu()
    return F.layer_norm(x, x.shape[-1:])


def _number(text: str) -> int:
    """A number that stands for a text: the same in every process, unlike hash()."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 1
