"""The page Models without a browser: what it says of a model, the list, memory and the hub."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from transformers import AutoModel

from explorer.model_facts import weights_of
from explorer.models import load
from explorer.ui import cached
from scripts.browser import ROOT
from tests.page_models import GROUPED, byte_tokenizer
from tests.pages import driven
from tests.pages.driven import said_plainly as said
from tests.small_models import SMALL_VIT, small_model

page = partial(driven.opened, "models")


@pytest.fixture(scope="module")
def folder(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small models, and two more: Gemma 2 with a soft cap, Mamba without attention."""
    root = tmp_path_factory.mktemp("listed") / "models"
    shutil.copytree(model_folder, root)
    gemma = {
        **GROUPED,
        "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"],
        "query_pre_attn_scalar": 24,
        "attn_logit_softcapping": 5.0,
    }
    mamba = {"vocab_size": 259, "hidden_size": 16, "num_hidden_layers": 2}
    for name, kind, settings in (("gemma", "gemma2", gemma), ("mamba", "mamba", mamba)):
        small_model(kind, settings, model_class=AutoModel).save_pretrained(root / name)
        byte_tokenizer().save_pretrained(root / name)
    small_model("vit", SMALL_VIT).save_pretrained(root / "patches")
    return root


@pytest.fixture
def local(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EXPLORER_MODELS", str(folder))
    yield
    cached.free()


def numbers(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def test_the_bundled_model_is_shown_at_once_with_its_sizes() -> None:
    app = page()
    model = load("minilm", "cpu").model
    count = sum(each.numel() for each in model.parameters())
    assert numbers(app) == {
        "Parameters": f"{count / 1e6:.1f} million",
        "Memory": f"{weights_of(model).bytes / 1e6:.3g} MB",
        "Layers": "6",
        "Heads a layer": "12",
        "d_k": "32",
        "Most tokens": "512",
    }
    words = said(app)
    assert f"is of the kind bert (BertModel): {count:,} parameters in float32" in words
    assert "6 layers of 12 heads, 72 heads in all." in words
    assert "Scale: 1/√d_k = 1/√32 = 0.1768, as in the paper." in words
    assert "Mask: none, every token may use every other." in words
    assert "Can be changed." in words
    table = app.dataframe[0].value
    assert list(table["layer"]) == list(range(6))
    assert set(table["heads"]) == {12} and set(table["mask"]) == {"none"}


SENTENCES = {
    "gemma": (
        "Keys and values: 4 heads share 2 key/value heads, 2 heads to each.",
        "Scale: 1/√24 = 0.2041, not 1/√d_k, which would be 0.3536.",
        "Mask: layer 0: sliding window of 4, a token may use itself and the 3 before; "
        "layer 1: causal, a token may use itself and those before.",
        "Also: a soft cap keeps scores between −5 and 5.",
    ),
    "two-stacks": (
        "Encoder: 2 layers of 4 heads, 8 heads in all.",
        "Decoder to encoder (cross): 3 layers of 4 heads, 12 heads in all.",
        "Scale: 1, so q·k itself; 1/√d_k would be 0.3536.",
        "decoder: causal, a token may use itself and those before",
        "encoder, decoder: a bias of its own is added to the scores",
        "decoder to encoder (cross): nothing more",
        "Length: its positions have no end",
    ),
    "sinks": ("weights sum to less than 1",),
    "one-head": ("1 layer of 1 head, 1 head in all.",),
    "off-interface": ("2 layers of 4 heads", "Read-only."),
    "no-tokenizer": ("It comes without a tokenizer",),
    "patches": ("2 layers of 4 heads, 8 heads in all.", "Open it in Images"),
}


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("name", SENTENCES)
def test_what_is_particular_to_a_model_is_said(name: str) -> None:
    words = said(page(model=f"local:{name}"))
    for sentence in SENTENCES[name]:
        assert sentence in words


@pytest.mark.usefixtures("local")
def test_the_table_has_a_row_for_each_stack_and_layer() -> None:
    table = page(model="local:two-stacks").dataframe[0].value
    kinds = [("Encoder", 2), ("Decoder", 3), ("Decoder to encoder (cross)", 3)]
    assert list(zip(table["stack"], table["layer"], strict=True)) == [
        (stack, layer) for stack, count in kinds for layer in range(count)
    ]
    assert list(table["mask"]) == ["none"] * 2 + ["causal"] * 3 + ["none"] * 3
    table = page(model="local:gemma").dataframe[0].value
    assert list(table["terms"]) == ["soft cap ±5"] * 2
    assert "stack" not in table


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("local:mamba", "(mamba) has no attention heads, so there is nothing to show."),
        ("local:broken", "The config.json of 'local:broken' cannot be read"),
        ("nobody/has-this-model", "is not on this computer and the hub cannot be reached."),
    ],
)
def test_a_model_that_cannot_be_opened_is_told_in_a_sentence_beside_the_list(
    model: str, sentence: str, folder: Path
) -> None:
    app = page(model=model)
    (error,) = app.error
    assert sentence in re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", error.value)
    assert str(folder) not in said(app)
    assert "Models to choose from" in [heading.value for heading in app.subheader]
    assert not app.metric


@pytest.mark.parametrize("wrong", ["../../etc", "local:none", "<script>", "a/b/c"])
def test_a_link_to_no_model_shows_the_bundled_one_and_says_so(wrong: str) -> None:
    app = page(model=wrong)
    assert "Showing the bundled model." in said(app)
    assert numbers(app)["Layers"] == "6"


@pytest.mark.usefixtures("local")
def test_the_list_holds_what_can_be_opened_and_says_what_cannot() -> None:
    app = page()
    table = app.dataframe[1].value.set_index("Name")
    assert table.loc["MiniLM L6", "From"] == "bundled"
    assert table.loc["local:gemma", "Kind"] == "gemma2"
    assert table.loc["local:twelve-layers", "Layers"] == 12
    assert table.loc["local:broken", "Kind"] == "can't be opened"
    assert "local:mamba: The model 'local:mamba' (mamba) has no attention heads" in said(app)


def test_without_a_directory_it_says_how_to_list_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORER_MODELS", raising=False)
    words = said(page())
    assert "Whoever runs the app can set the environment variable `EXPLORER_MODELS`" in words
    assert "type a model's id into the list, as `openai-community/gpt2`" in words


def test_with_the_hub_off_an_id_is_refused_and_the_page_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EXPLORER_HUB", "off")
    app = page(model="openai-community/gpt2")
    assert "Models of the Hugging Face hub are switched off here" in said(app)
    assert "switched off by whoever runs this app (`EXPLORER_HUB`)" in said(app)
    assert numbers(page())["Layers"] == "6"


@pytest.mark.usefixtures("local")
def test_the_memory_lists_what_is_loaded_and_lets_it_go() -> None:
    cached.free()
    page(model="local:gemma")
    app = page(model="local:sinks")
    assert [name for name, _ in cached.in_memory()] == ["local:gemma", "local:sinks"]
    assert "- local:gemma:" in said(app) and "- local:sinks:" in said(app)
    total = sum(weights_of(model).bytes for _, model in cached.in_memory())
    app = app.button[-1].click().run()
    assert not app.exception
    assert cached.in_memory() == []
    assert f"{total / 1000:.3g} kB of weights let go." in said(app)
    assert "No model is in memory." in said(app) and not app.metric
    app = app.button[0].click().run()
    assert numbers(app)["Layers"] == "2"
    assert [name for name, _ in cached.in_memory()] == ["local:sinks"]


@pytest.mark.usefixtures("local")
def test_what_other_pages_keep_of_a_model_is_let_go_too() -> None:
    for name in ("heads", "all_heads", "what_if", "real_heads", "compare"):
        app = AppTest.from_file(ROOT / "pages" / f"{name}.py", default_timeout=120)
        app.query_params["model"] = "local:causal"
        app.query_params["left_model"] = "local:causal"
        app.query_params["text"] = "ab"
        assert not app.run().exception
    assert "local:causal" in [name for name, _ in cached.in_memory()]
    del app
    cached.free()
    assert cached.in_memory() == []
