"""load() on the bundled model, on folders written here, and where it must refuse."""

import dataclasses
import json
import time
import weakref
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import httpx2
import pytest
import torch
import transformers
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import AutoConfig, PreTrainedTokenizerFast

import explorer.catalogue
from explorer.models import (
    CATALOGUE,
    DeviceMemoryError,
    LoadedModel,
    ModelError,
    encode,
    is_hub_id,
    load,
    memory_errors,
    pick_device,
    pick_dtype,
)

SMALL: dict[str, Any] = {
    "vocab_size": 20,
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


def save(folder: Path, class_name: str, config_name: str, **settings: Any) -> str:
    """A small random model saved to a folder, without a tokenizer."""
    config = getattr(transformers, config_name)(**settings)
    getattr(transformers, class_name)(config).save_pretrained(folder)
    return str(folder)


def save_words(folder: Path) -> None:
    """A tokenizer of whole words, saved to a folder."""
    vocab = {word: at for at, word in enumerate(["[UNK]", "[PAD]", "the", "cat", "sat"])}
    backend = Tokenizer(models.WordLevel(vocab=vocab, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]"
    ).save_pretrained(folder)


# What is loaded


def test_the_bundled_model_is_ready_to_run(minilm: LoadedModel) -> None:
    assert (minilm.name, minilm.title) == ("minilm", CATALOGUE["minilm"].title)
    assert (minilm.n_layers, minilm.n_heads, minilm.max_tokens) == (6, 12, 512)
    assert minilm.takes_pairs and not minilm.is_encoder_decoder
    assert not minilm.model.training
    assert minilm.dtype == next(minilm.model.parameters()).dtype == torch.float32
    with torch.no_grad():
        output = minilm.model(**encode(minilm, "The cat sat.").inputs)
    assert output.last_hidden_state.shape == (1, 6, 384)


def test_a_loaded_model_cannot_be_changed(minilm: LoadedModel) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        minilm.name = "other"  # type: ignore[misc]


def test_a_folder_is_loaded_with_its_own_head_and_tokenizer(tmp_path: Path) -> None:
    name = save(
        tmp_path / "tiny",
        "GPT2LMHeadModel",
        "GPT2Config",
        vocab_size=20,
        n_embd=8,
        n_layer=2,
        n_head=2,
        n_positions=16,
    )
    save_words(tmp_path / "tiny")
    loaded = load(name, device="cpu")
    assert type(loaded.model).__name__ == "GPT2LMHeadModel"
    assert (loaded.title, loaded.max_tokens) == ("tiny", 16)
    assert (loaded.n_layers, loaded.n_heads, loaded.takes_pairs) == (2, 2, False)
    assert encode(loaded, "the cat sat").tokens.texts == ("the", "cat", "sat")


@pytest.mark.parametrize(
    ("class_name", "config_name", "settings", "limit"),
    [
        ("BertForMaskedLM", "BertConfig", SMALL, 512),
        ("BertForSequenceClassification", "BertConfig", SMALL, 512),
        ("BertModel", "BertConfig", SMALL, 512),
        # Positions of RoBERTa begin at padding_idx + 1 = 2.
        (
            "RobertaModel",
            "RobertaConfig",
            {**SMALL, "max_position_embeddings": 34, "pad_token_id": 1},
            32,
        ),
        (
            "LlamaForCausalLM",
            "LlamaConfig",
            {**SMALL, "max_position_embeddings": 64, "num_key_value_heads": 1},
            64,
        ),
        (
            "T5ForConditionalGeneration",
            "T5Config",
            {"vocab_size": 20, "d_model": 8, "d_ff": 8, "d_kv": 4, "num_layers": 2, "num_heads": 2},
            None,
        ),
        (
            "BloomModel",
            "BloomConfig",
            {"vocab_size": 20, "hidden_size": 8, "n_layer": 2, "n_head": 2},
            None,
        ),
    ],
)
def test_families_are_loaded_by_their_own_class_and_know_their_limit(
    tmp_path: Path,
    class_name: str,
    config_name: str,
    settings: dict[str, Any],
    limit: int | None,
) -> None:
    loaded = load(save(tmp_path, class_name, config_name, **settings), device="cpu")
    assert type(loaded.model).__name__ == class_name
    assert loaded.max_tokens == limit
    assert (loaded.n_layers, loaded.n_heads) == (2, 2)
    assert loaded.is_encoder_decoder == (class_name == "T5ForConditionalGeneration")
    assert loaded.tokenizer is None
    assert not loaded.model.training


def test_a_tokenizer_with_a_lower_limit_than_the_model_decides(tmp_path: Path) -> None:
    name = save(tmp_path, "BertModel", "BertConfig", **SMALL)
    save_words(tmp_path)
    loaded = load(name, device="cpu")
    assert loaded.tokenizer is not None
    assert loaded.max_tokens == 512
    loaded.tokenizer.model_max_length = 100
    again = dataclasses.replace(loaded)
    assert again.max_tokens == 100


def test_the_longest_text_allowed_really_runs(tmp_path: Path) -> None:
    settings = {**SMALL, "max_position_embeddings": 34, "pad_token_id": 1}
    name = save(tmp_path, "RobertaModel", "RobertaConfig", **settings)
    model = load(name, device="cpu").model
    with torch.no_grad():
        model(input_ids=torch.full((1, 32), 3))
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, 33), 3))


def test_a_model_of_images_is_loaded_without_a_tokenizer(tmp_path: Path) -> None:
    settings = {
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "image_size": 32,
    }
    loaded = load(save(tmp_path, "ViTModel", "ViTConfig", **settings), device="cpu")
    assert loaded.tokenizer is None and not loaded.takes_pairs


def test_the_number_format_can_be_chosen(tmp_path: Path) -> None:
    name = save(tmp_path, "BertModel", "BertConfig", **SMALL)
    loaded = load(name, device="cpu", dtype="bfloat16")
    assert loaded.dtype == next(loaded.model.parameters()).dtype == torch.bfloat16


# Devices and number formats


def test_the_device_chosen_by_itself_is_the_fastest_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert pick_device().type == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert pick_device().type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device().type == "cuda"


def test_the_number_format_chosen_by_itself_fits_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert pick_dtype("auto", torch.device("cpu")) == torch.float32
    assert pick_dtype("auto", torch.device("mps")) == torch.float32
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    assert pick_dtype("auto", torch.device("cuda")) == torch.bfloat16
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    assert pick_dtype("auto", torch.device("cuda")) == torch.float32
    assert pick_dtype("float16", torch.device("cpu")) == torch.float16


def test_a_device_or_format_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("cuda", "cuda:7", "toaster", "meta"):
        with pytest.raises(ModelError, match="device"):
            pick_device(name)
    with pytest.raises(ModelError, match="float8"):
        pick_dtype("float8", torch.device("cpu"))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("not enough memory: you tried to allocate 1 bytes."),
        RuntimeError("MPS backend out of memory"),
        MemoryError(),
    ],
)
def test_running_out_of_memory_becomes_a_sentence(error: BaseException) -> None:
    held: list[weakref.ref[torch.Tensor]] = []

    def work() -> None:
        tensor = torch.zeros(3)
        held.append(weakref.ref(tensor))
        raise error

    with pytest.raises(DeviceMemoryError, match="ran out of memory"), memory_errors():
        work()
    assert held[0]() is None  # freed although the error is still known


def test_a_real_request_for_too_much_memory_is_caught() -> None:
    with pytest.raises(DeviceMemoryError), memory_errors():
        torch.empty(2**58)


def test_other_errors_pass_through() -> None:
    with pytest.raises(RuntimeError, match="shape"), memory_errors():
        raise RuntimeError("shape mismatch")


def test_a_model_too_large_for_the_device_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = save(tmp_path, "BertModel", "BertConfig", **SMALL)

    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(nn.Module, "to", full)
    with pytest.raises(DeviceMemoryError):
        load(name, device="cpu")


# What is refused on the disk


def test_changed_weights_of_the_bundled_model_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = dataclasses.replace(CATALOGUE["minilm"], sha256="0" * 64)
    catalogue = MappingProxyType({"minilm": changed})
    monkeypatch.setattr(explorer.catalogue, "CATALOGUE", catalogue)
    with pytest.raises(ModelError, match="checksum"):
        load("minilm", device="cpu")


def test_the_checksum_is_computed_once(minilm: LoadedModel) -> None:
    before = explorer.catalogue._sha256.cache_info()
    load("minilm", device="cpu")
    after = explorer.catalogue._sha256.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 1)


def test_a_bundled_package_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = dataclasses.replace(CATALOGUE["minilm"], package="no_such_package")
    catalogue = MappingProxyType({"minilm": missing})
    monkeypatch.setattr(explorer.catalogue, "CATALOGUE", catalogue)
    with pytest.raises(ModelError, match="not installed"):
        load("minilm", device="cpu")


def test_a_folder_with_pickles_only_is_refused(tmp_path: Path) -> None:
    name = save(tmp_path, "BertModel", "BertConfig", **SMALL)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickles"):
        load(name, device="cpu")


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    name = save(tmp_path, "BertModel", "BertConfig", **SMALL)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="no weights"):
        load(name, device="cpu")


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"not a model folder.*config\.json"):
        load(str(tmp_path))
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="adapter"):
        load(str(tmp_path))


@pytest.mark.parametrize("content", ["not json", "[]", "3", "{}", '{"model_type": "unheard-of"}'])
def test_a_config_that_says_nothing_known_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"config\.json"):
        load(str(tmp_path))


def test_a_model_that_needs_code_of_its_own_is_refused(tmp_path: Path) -> None:
    settings = {"model_type": "own", "auto_map": {"AutoModel": "modeling_own.OwnModel"}}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / "modeling_own.py").write_text("raise SystemExit('this must never run')")
    with pytest.raises(ModelError, match="code of its own"):
        load(str(tmp_path))


def test_a_model_without_attention_is_refused(tmp_path: Path) -> None:
    settings = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "state_size": 4}
    name = save(tmp_path, "MambaModel", "MambaConfig", **settings)
    with pytest.raises(ModelError, match=r"mamba.*no attention"):
        load(name, device="cpu")


def test_a_model_of_two_towers_is_told_apart_from_one_without_attention(tmp_path: Path) -> None:
    AutoConfig.for_model("clip").save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"never read")
    with pytest.raises(ModelError, match="several models, one of text"):
        load(str(tmp_path))


def test_broken_weights_are_refused(tmp_path: Path) -> None:
    name = save(tmp_path, "BertModel", "BertConfig", **SMALL)
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 64)
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(name, device="cpu")


def test_weights_that_leave_a_layer_at_random_are_refused(tmp_path: Path) -> None:
    name = save(tmp_path, "BertModel", "BertConfig", **SMALL)
    weights = load_file(tmp_path / "model.safetensors")
    kept = {key: value for key, value in weights.items() if "layer.1." not in key}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="do not fit"):
        load(name, device="cpu")


def test_weights_of_another_size_are_refused(tmp_path: Path) -> None:
    name = save(tmp_path, "BertModel", "BertConfig", **SMALL)
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**settings, "hidden_size": 16}))
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(name, device="cpu")


# Names and the hub


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "..", "a b", "-x", "\0", "\ud83d", "x" * 5000),
        *("owner/", "a/../b", "a/b/c", "../../etc/passwd", "/no/such/folder"),
        "https://huggingface.co/gpt2",
    ],
)
def test_a_name_that_can_be_no_model_is_refused_at_once(name: str) -> None:
    assert not is_hub_id(name)
    with pytest.raises(ModelError) as caught:
        load(name)
    assert len(str(caught.value)) < 400


def test_hub_ids_are_known_by_their_form() -> None:
    assert is_hub_id("gpt2") and is_hub_id("openai-community/gpt2") and is_hub_id("a/b.c_d-1")


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))


def answer_with(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    """The hub's first answer: raised if it is an error, else returned."""

    def model_info(*_: Any, **__: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", model_info)


@pytest.mark.usefixtures("no_cache")
def test_without_a_network_the_answer_comes_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    # A name look-up that fails, as it does without a network, whether or not this machine has one.
    monkeypatch.setattr("socket.getaddrinfo", _no_such_host)
    start = time.monotonic()
    with pytest.raises(ModelError, match="cannot be reached"):
        load("gpt2")
    assert time.monotonic() - start < 5


def _no_such_host(*_: Any, **__: Any) -> None:
    raise OSError("Name or service not known")


@pytest.mark.usefixtures("no_cache")
def test_a_network_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer.catalogue, "HUB_SECONDS", 0.2)
    answer_with(monkeypatch, lambda: time.sleep(3))
    start = time.monotonic()
    with pytest.raises(ModelError, match="cannot be reached"):
        load("gpt2")
    assert time.monotonic() - start < 2


def _response(status: int) -> httpx2.Response:
    return httpx2.Response(status, request=httpx2.Request("GET", "https://huggingface.co"))


def test_an_unknown_id_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, RepositoryNotFoundError("404", response=_response(404)))
    with pytest.raises(ModelError, match="no public model 'owner/nothing'"):
        load("owner/nothing")


def test_a_gated_model_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, GatedRepoError("403", response=_response(403)))
    with pytest.raises(ModelError, match="gated"):
        load("owner/gated")


def _hub_with(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[list[str]]:
    """A hub that has one folder's files; returns the lists of files asked for."""
    files = [SimpleNamespace(rfilename=path.name) for path in folder.iterdir()]
    answer_with(monkeypatch, SimpleNamespace(siblings=files, sha="abc"))
    asked: list[list[str]] = []

    def download(*_: Any, allow_patterns: list[str], **__: Any) -> str:
        asked.append(allow_patterns)
        return str(folder)

    monkeypatch.setattr(explorer.catalogue, "snapshot_download", download)
    return asked


def test_a_model_from_the_hub_fetches_only_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, "BertModel", "BertConfig", **SMALL)
    for unread in ("pytorch_model.bin", "model.fp16.safetensors", "code.py", "tf_model.h5"):
        (tmp_path / unread).write_text("")
    asked = _hub_with(monkeypatch, tmp_path)
    loaded = load("owner/tiny", device="cpu")
    assert (loaded.name, loaded.title) == ("owner/tiny", "tiny")
    assert [sorted(files) for files in asked] == [
        ["config.json"],
        ["config.json", "model.safetensors"],
    ]


def test_a_hub_model_of_the_wrong_kind_is_refused_before_its_weights_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "state_size": 4}
    save(tmp_path, "MambaModel", "MambaConfig", **settings)
    asked = _hub_with(monkeypatch, tmp_path)
    with pytest.raises(ModelError, match="no attention"):
        load("owner/mamba")
    assert asked == [["config.json"]]


def test_a_hub_model_with_pickles_only_is_refused_before_anything_else_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, "BertModel", "BertConfig", **SMALL)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    asked = _hub_with(monkeypatch, tmp_path)
    with pytest.raises(ModelError, match="pickles"):
        load("owner/pickled")
    assert asked == [["config.json"]]


def test_a_model_in_the_hubs_cache_is_loaded_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache" / "models--owner--tiny"
    commit = "a" * 40
    save(cache / "snapshots" / commit, "BertModel", "BertConfig", **SMALL)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    answer_with(monkeypatch, OSError("no network"))
    assert load("owner/tiny", device="cpu").n_layers == 2


def test_nothing_of_a_model_folder_is_run(tmp_path: Path) -> None:
    name = save(tmp_path, "BertModel", "BertConfig", **SMALL)
    settings = json.loads((tmp_path / "config.json").read_text())
    settings["auto_map"] = {"AutoModel": "modeling_own.OwnModel"}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / "modeling_own.py").write_text("raise SystemExit('this must never run')")
    assert type(load(name, device="cpu").model).__name__ == "BertModel"
