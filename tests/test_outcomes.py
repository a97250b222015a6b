"""What is compared for each kind of model, and the number that is watched."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch

from explorer import effects
from explorer.capture import capture
from explorer.changes import Change
from explorer.changes_applied import intervention
from explorer.loading import LoadedModel
from explorer.models import load
from explorer.outcomes import (
    Question,
    capture_hiding,
    entry_text,
    entry_typed,
    kind_of,
    raw_entry,
)
from tests.headed_models import save_headed_models
from tests.page_models import save_page_models


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("outcomes")
    save_page_models(root)
    return save_headed_models(root)


@cache
def loaded(path: Path) -> LoadedModel:
    return load(str(path), "cpu")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("writer", "next"),
        ("filler", "masked"),
        ("judge", "classes"),
        ("tagger", "labels"),
        ("one-head", "similarity"),
        ("causal", "drift"),
        ("two-stacks", "drift"),
    ],
)
def test_what_is_compared_follows_the_models_head(folder: Path, name: str, kind: str) -> None:
    model = loaded(folder / name)
    assert kind_of(model, capture(model, "a cat")) == kind


def test_the_numbers_are_those_of_effects(folder: Path) -> None:
    model = loaded(folder / "writer")
    own = capture(model, "a cat")
    before = own.changed([])
    after = own.changed([intervention(Change("off", (1,), (0,)), own)])
    found = Question("next", 2, 70).number([before], [after])
    assert after.logits is not None
    assert found == pytest.approx(float(after.logits[2].double().log_softmax(-1)[70]))
    moved = Question("drift").number([before], [after])
    assert moved == pytest.approx(float(effects.drift(before, after)[-1].mean()))
    assert Question("drift").number([before], [before]) == 0


def test_a_hidden_word_is_replaced_by_the_mask_token(folder: Path) -> None:
    model = loaded(folder / "filler")
    tokenizer = model.tokenizer
    assert tokenizer is not None
    plain = capture(model, "a cat")
    hidden = capture_hiding(model, "a cat", [3, 4])
    assert hidden.tokens.ids[3:5] == (tokenizer.mask_token_id,) * 2
    assert hidden.tokens.texts == ("<s>", "a", "·", "<mask>", "<mask>", "t")
    assert plain.tokens.ids[5] == hidden.tokens.ids[5]
    ids = torch.tensor([hidden.tokens.ids])
    with torch.no_grad():
        expected = model.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
    assert hidden.logits is not None
    torch.testing.assert_close(hidden.logits, expected, atol=1e-5, rtol=1e-5)


def test_a_model_without_a_mask_token_hides_nothing(folder: Path) -> None:
    with pytest.raises(ValueError, match="no word can be hidden"):
        capture_hiding(loaded(folder / "one-head"), "a cat", [1])


def test_entries_are_read_as_a_person_reads_them(folder: Path) -> None:
    model = loaded(folder / "writer")
    assert model.tokenizer is not None
    at = {raw: model.tokenizer.convert_tokens_to_ids(raw) for raw in ("a", "Ġ", "<s>")}
    assert entry_text(model, "next", at["a"]) == "a"
    assert entry_text(model, "next", at["Ġ"]) == "·"
    assert entry_text(model, "next", at["<s>"]) == "<s>"
    assert raw_entry(model, at["Ġ"]) == "Ġ"
    assert raw_entry(model, 10**6) == "id 1000000"
    judge = loaded(folder / "judge")
    assert [entry_text(judge, "classes", n) for n in range(3)] == ["bad", "fair", "good"]
    minilm = load("minilm", "cpu")
    assert minilm.tokenizer is not None
    piece = minilm.tokenizer.convert_tokens_to_ids("##ing")
    assert entry_text(minilm, "masked", piece) == "##ing"  # it goes on with a word


def test_a_typed_word_is_found_in_the_vocabulary(folder: Path) -> None:
    minilm = load("minilm", "cpu")
    assert minilm.tokenizer is not None
    assert entry_typed(minilm, "cat") == (minilm.tokenizer.convert_tokens_to_ids("cat"), 1)
    assert entry_typed(minilm, "unbelievably")[1] > 1
    model = loaded(folder / "writer")
    assert model.tokenizer is not None
    assert entry_typed(model, " t ") == (model.tokenizer.convert_tokens_to_ids("t"), 1)
    with pytest.raises(ValueError, match="no token"):
        entry_typed(minilm, "")
