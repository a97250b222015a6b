"""Texts as vectors: reproducible, of unit variance, and the model's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.models import LoadedModel, TextError, encode
from explorer.tokens import Tokens
from explorer.vectors import (
    hidden_states,
    random_embeddings,
    sinusoidal_positions,
    token_embeddings,
    words,
)


def test_words_are_split_at_spaces_and_bounded() -> None:
    assert words("the cat  sat\n on").texts == ("the", "cat", "sat", "on")
    with pytest.raises(TextError, match="type some text"):
        words(" \n ")
    with pytest.raises(TextError, match="5 words are too many"):
        words("a b c d e", most=4)


def test_equal_words_have_equal_vectors_wherever_they_stand() -> None:
    x = random_embeddings(Tokens.plain(["the", "cat", "the"]), 16, seed=3, positions=False)
    assert torch.equal(x[0], x[2])
    assert not torch.equal(x[0], x[1])
    alone = random_embeddings(Tokens.plain(["cat"]), 16, seed=3, positions=False)
    assert torch.equal(x[1], alone[0])


def test_positions_tell_equal_words_apart() -> None:
    x = random_embeddings(Tokens.plain(["the", "cat", "the"]), 16, seed=3)
    assert (x[0] - x[2]).abs().max() > 0.1


def test_another_seed_gives_other_vectors_and_the_same_seed_the_same() -> None:
    tokens = Tokens.plain(["a", "b"])
    assert torch.equal(random_embeddings(tokens, 8, 1), random_embeddings(tokens, 8, 1))
    assert not torch.equal(random_embeddings(tokens, 8, 1), random_embeddings(tokens, 8, 2))


@pytest.mark.parametrize("positions", [True, False])
def test_a_component_has_a_mean_square_of_one(positions: bool) -> None:
    tokens = Tokens.plain([f"w{n}" for n in range(64)])
    x = random_embeddings(tokens, 512, positions=positions)
    assert float(x.square().mean()) == pytest.approx(1.0, abs=0.03)


def test_sinusoids_are_those_of_the_paper() -> None:
    # Vaswani et al. 2017: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same)
    d, pos, i = 8, 5, 1
    angle = pos / 10_000 ** (2 * i / d)
    table = sinusoidal_positions(10, d)
    assert float(table[pos, 2 * i]) == pytest.approx(np.sin(angle), abs=1e-6)
    assert float(table[pos, 2 * i + 1]) == pytest.approx(np.cos(angle), abs=1e-6)


def test_token_embeddings_are_the_models_rows_normalised(minilm: LoadedModel) -> None:
    encoded = encode(minilm, "the cat")
    x = token_embeddings(minilm, encoded)
    table = minilm.model.get_input_embeddings().weight.detach().double().numpy()
    row = table[encoded.tokens.ids[1]]
    expected = (row - row.mean()) / np.sqrt(row.var() + 1e-5)
    assert np.abs(x[1].numpy() - expected).max() < 1e-4


def test_hidden_states_differ_by_layer_and_have_bounds(minilm: LoadedModel) -> None:
    encoded = encode(minilm, "the cat")
    first, last = hidden_states(minilm, encoded, 0), hidden_states(minilm, encoded, 6)
    assert first.shape == last.shape == (4, 384)
    assert (first - last).abs().max() > 0.1
    with pytest.raises(ValueError, match="states 0 to 6"):
        hidden_states(minilm, encoded, 7)
