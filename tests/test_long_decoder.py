"""A decoder with long context, windows and full layers mixed: 4,096 tokens and no n × n table."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoModelForCausalLM

from explorer import cores
from explorer.attention import Attention
from explorer.capture import capture
from explorer.maps import Picture, overview
from explorer.models import LoadedModel
from explorer.stacks import Stack
from tests.page_models import BYTES, byte_tokenizer
from tests.small_models import small_model

ROOT = Path(__file__).resolve().parent.parent
LENGTH = 4096
WINDOW = 256
TABLE = LENGTH * LENGTH * 4
"""Bytes of one head's weights in float32: 64 MiB."""
COMMON: dict[str, Any] = {
    **BYTES,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 8192,
    "sliding_window": WINDOW,
}
DECODERS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    # Each with the numbers of its full layers.
    "gemma3_text": ({**COMMON, "num_hidden_layers": 3, "sliding_window_pattern": 3}, (2,)),
    "gemma2": ({**COMMON, "num_hidden_layers": 2}, (1,)),
}


def decoder(family: str) -> LoadedModel:
    model = small_model(family, DECODERS[family][0], model_class=AutoModelForCausalLM)
    return LoadedModel(family, "Small", model, byte_tokenizer(), model.device, model.dtype)


def text(length: int) -> str:
    """A text of `length` tokens of one byte each, the start token included."""
    letters = torch.randint(97, 123, (length - 1,), generator=torch.Generator().manual_seed(1))
    return "".join(map(chr, letters.tolist()))


def stack_of(family: str, length: int) -> Stack:
    captured = capture(decoder(family), text(length))
    assert captured.logits is not None and captured.logits.shape == (length, 259)
    return captured.stacks["decoder"]


class Run(NamedTuple):
    """A long text through a decoder, and what was seen of it."""

    stack: Stack
    pictures: list[Picture]
    full: tuple[int, ...]
    """The numbers of the layers without a window."""
    largest: int
    """The largest memory behind any tensor, in bytes."""


class Sizes(TorchDispatchMode):
    """Keeps the largest memory behind a tensor made in this thread, in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for each in tree_leaves(made):
            if isinstance(each, Tensor):
                self.largest = max(self.largest, each.untyped_storage().nbytes())
        return made


@pytest.fixture
def all_in_this_thread() -> Iterator[None]:
    """A worker does its work itself, so that the mode sees all of it."""
    own = threading.current_thread()
    name = own.name
    own.name = cores.WORKER
    yield
    own.name = name


@pytest.fixture(scope="module", params=DECODERS)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """One capture and its overviews, all done in this thread so that the mode sees all of it."""
    own = threading.current_thread()
    name, own.name = own.name, cores.WORKER
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker's; small steps of two threads stall on busy cores
    try:
        with Sizes() as seen:
            stack = stack_of(request.param, LENGTH)
            pictures = [overview(layer).picture for layer in stack.layers]
    finally:
        own.name = name
        torch.set_num_threads(threads)
    yield Run(stack, pictures, DECODERS[request.param][1], seen.largest)


def test_no_tensor_is_as_large_as_one_heads_table(run: Run) -> None:
    assert run.largest < TABLE / 4
    assert len(run.stack.layers) == run.stack.n_layers
    for picture in run.pictures:
        assert picture.mean.shape == (4, 256, 256)
        torch.testing.assert_close(picture.mean.sum(-1), torch.ones(4, 256), atol=1e-4, rtol=0)


def test_a_tensor_as_large_as_a_table_would_be_seen() -> None:
    with Sizes() as seen:
        torch.empty(LENGTH, 4).matmul(torch.empty(4, LENGTH))
    assert seen.largest == TABLE


def test_windows_and_full_layers_keep_their_reach(run: Run) -> None:
    bins = torch.arange(256)  # of 16 tokens
    ahead = bins > bins[:, None]
    for number, (layer, picture) in enumerate(zip(run.stack.layers, run.pictures, strict=True)):
        assert isinstance(layer, Attention)
        reach = LENGTH if number in run.full else WINDOW
        for row in (0, 100, 2000, LENGTH - 1):
            allowed = layer.allowed(rows=[row])[0, 0]
            expected = torch.zeros(LENGTH, dtype=torch.bool)
            expected[max(0, row - reach + 1) : row + 1] = True
            assert torch.equal(allowed, expected)
        # A bin's nearest cells are 16 · (its distance) − 15 apart.
        beyond = 16 * (bins[:, None] - bins) - 15 >= reach
        assert torch.equal(picture.forbidden[0], ahead | beyond)
        assert float(picture.largest[:, ahead | beyond].max()) == 0


PEAK = """
import sys
from pathlib import Path
from benchmarks.memory import peak
from explorer.maps import overview
from tests.test_long_decoder import stack_of
family, length = sys.argv[1], int(sys.argv[2])

def work():
    stack = stack_of(family, length)
    for layer in stack.layers:
        kept = overview(layer)
    return stack

long, length = length, 300
work()  # libraries and threads have started
length = long
print(peak(work))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads /proc")
def test_memory_grows_by_less_than_one_heads_table() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, "gemma2", str(LENGTH)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < TABLE


def test_the_long_decoder_equals_the_models_own_attention() -> None:
    captured = capture(decoder("gemma3_text"), text(700))  # longer than its windows
    assert captured.max_difference is not None and captured.max_difference < 1e-5
