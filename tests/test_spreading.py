"""Models larger than one device: when they are spread, and that they then give the same.

Without a GPU here, a layer on disk stands for one elsewhere: accelerate fetches it when its turn
comes, by the same hooks that bring a text from one GPU to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModel

import explorer.loading
import explorer.spreading
from explorer.capture import Capture, capture
from explorer.interventions import Intervention
from explorer.model_facts import model_facts, weights_of
from explorer.models import LoadedModel, load
from explorer.spreading import device_map, is_spread, place_of, weight_bytes
from tests.page_models import KINDS, byte_tokenizer
from tests.small_models import small_model
from tests.test_model_facts import MORE

GPU = torch.device("cuda")
PARTS = {
    "gemma": "layers.1",
    "llama": "layers.1",
    "opt": "decoder.layers.1",
    "sinks": "layers.1",
    "causal": "h.1",
    "twelve-layers": "encoder.layer.3",
    "two-stacks": "decoder.block.1",
    "denoiser": "decoder.layers.1",
    "off-interface": "h.1",
}
"""For each kind of model the layer that lies on disk."""
Opened = Callable[[str], tuple[LoadedModel, LoadedModel]]


def a_map(model: nn.Module, on_disk: str, path: str = "") -> dict[str, str]:
    """A place for each part of a model: one part on disk, the rest on the CPU."""
    found = {path + name: "cpu" for name, _ in model.named_parameters(recurse=False)}
    for name, part in model.named_children():
        if on_disk.startswith(f"{path}{name}."):
            found |= a_map(part, on_disk, f"{path}{name}.")
        else:
            found[path + name] = "disk" if path + name == on_disk else "cpu"
    return found


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """A small model of a kind, once whole and once with a layer on disk."""

    def open_both(kind: str) -> tuple[LoadedModel, LoadedModel]:
        model_type, settings = {**KINDS, **MORE}[kind]
        small_model(model_type, settings, model_class=AutoModel).save_pretrained(tmp_path / kind)
        byte_tokenizer().save_pretrained(tmp_path / kind)
        whole = load(str(tmp_path / kind), "cpu")
        spread_map = a_map(whole.model, PARTS[kind])
        monkeypatch.setattr(explorer.loading, "device_map", lambda *given: spread_map)
        return whole, load(str(tmp_path / kind), "cpu")

    return open_both


def run(loaded: LoadedModel, text: str = "ab ab") -> Capture:
    return capture(loaded, text, target="cd" if loaded.is_encoder_decoder else None)


def equal(one: Capture, other: Capture) -> bool:
    """Whether all weights of two captures are the same to the last bit."""
    return all(
        torch.equal(first.weights(), second.weights())
        for name, stack in one.stacks.items()
        for first, second in zip(stack.layers, other.stacks[name].layers, strict=True)
    )


@pytest.mark.parametrize("kind", PARTS)
def test_a_spread_model_gives_the_same_weights(kind: str, opened: Opened) -> None:
    whole, spread = opened(kind)
    assert is_spread(spread.model) and not is_spread(whole.model)
    lent = [name for name, each in spread.model.named_parameters() if each.is_meta]
    assert lent and all(name.startswith(f"{PARTS[kind]}.") for name in lent)
    found, expected = run(spread), run(whole)
    assert equal(found, expected)
    read_only = kind == "off-interface"
    assert all(stack.read_only == read_only for stack in found.stacks.values())
    if not read_only:
        assert found.max_difference is not None and found.max_difference < 1e-5


def test_interventions_work_on_a_spread_model(opened: Opened) -> None:
    whole, spread = opened("causal")
    change = [Intervention("decoder", layers=(1,), heads=(2,), scale_times=3.0)]
    assert equal(run(spread).changed(change), run(whole).changed(change))
    more = run(whole, "x").tokens
    assert equal(run(spread).extended(more, change), run(whole).extended(more, change))


def test_many_at_once_on_a_spread_model_never_meet_a_layer_half_fetched(opened: Opened) -> None:
    whole, spread = opened("llama")
    texts = [f"text {n}" for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: run(spread, text), texts * 3))
    for text, one in zip(texts * 3, found, strict=True):
        assert equal(one, run(whole, text))


def test_what_is_fetched_for_one_run_is_not_kept(opened: Opened) -> None:
    _, spread = opened("llama")
    layers = run(spread).stacks["decoder"].layers
    kept: list[Any] = [getattr(layer, "output_weight", None) for layer in layers]
    assert kept[0] is not None and kept[1] is None


def test_the_facts_say_where_the_parts_lie(opened: Opened) -> None:
    whole, spread = opened("llama")
    assert weights_of(spread.model).devices == ("cpu", "disk")
    assert weights_of(spread.model).bytes == weights_of(whole.model).bytes
    assert model_facts(spread).layers == model_facts(whole).layers
    assert place_of(spread.model, "layers.1.mlp.up_proj.weight") == "disk"
    assert place_of(spread.model, "layers.0.mlp.up_proj.weight") == "cpu"
    assert place_of(whole.model, "layers.1.mlp.up_proj.weight") is None


def test_a_gpus_number_is_written_as_its_device() -> None:
    model = nn.Module()
    model.hf_device_map = {"layers.1": 0, "layers.10": 1, "": "cpu"}  # type: ignore[assignment]
    found: Mapping[str, str | None] = {
        name: place_of(model, name) for name in ("layers.1.weight", "layers.10.weight", "norm")
    }
    assert list(found.values()) == ["cuda:0", "cuda:1", "cpu"]


def test_the_size_is_that_of_the_weights_in_the_chosen_format(tmp_path: Path) -> None:
    model = small_model("bert", KINDS["twelve-layers"][1])
    model.save_pretrained(tmp_path)
    numbers = sum(each.numel() for each in model.parameters())
    assert weight_bytes(tmp_path, torch.float32) == 4 * numbers
    assert weight_bytes(tmp_path, torch.bfloat16) == 2 * numbers
    for path in tmp_path.iterdir():
        path.unlink()
    model.save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert weight_bytes(tmp_path, torch.float32) == 4 * numbers


@pytest.mark.parametrize(
    ("free", "expected"), [(10**9, None), (1101, None), (1099, "auto"), (0, "auto")]
)
def test_a_model_is_spread_only_where_a_gpu_has_no_room_for_it(
    free: int, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer.spreading, "weight_bytes", lambda *given: 1000)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 10**9))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    assert device_map(Path("any"), torch.float32, GPU) == expected


def test_on_the_cpu_nothing_is_spread() -> None:
    assert device_map(Path("not read"), torch.float32, torch.device("cpu")) is None
    minilm = load("minilm")
    assert minilm.device.type != "cpu" or not is_spread(minilm.model)
