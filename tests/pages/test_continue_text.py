"""The page Continue without a browser: both texts, where they part, and each token's row."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from streamlit.testing.v1 import AppTest
from transformers import AutoModelForSeq2SeqLM

from explorer.capture import capture
from explorer.changes import decode_changes
from explorer.changes_applied import interventions
from explorer.continuing import continue_text
from explorer.continuing_steps import GREEDY, Output, Step, continued, pieces
from explorer.models import ModelError, load
from explorer.ui import continuing_run
from explorer.ui.continuing_writing import Writing
from explorer.ui.what_if import COPY_TEXT, SMALL_DECODER
from tests.headed_models import save_headed_models
from tests.page_models import KINDS, byte_tokenizer
from tests.pages import driven
from tests.pages.driven import looked_at, said, spec
from tests.small_models import small_model

TEXT = "a cat a cat"
CHANGE = "off_L0"
open_page = partial(driven.opened, "continue_text")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = save_headed_models(tmp_path_factory.mktemp("writers"))
    model_type, settings = KINDS["two-stacks"]
    model = small_model(model_type, settings, model_class=AutoModelForSeq2SeqLM)
    model.save_pretrained(root / "translator")
    byte_tokenizer().save_pretrained(root / "translator")
    return root


@pytest.fixture
def opened(models: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Opens the page on the small writer, and runs it until all tokens are there."""
    monkeypatch.setenv("EXPLORER_MODELS", str(models))

    def open_with(name: str = "writer", **link: str) -> AppTest:
        app = open_page(model=f"local:{name}", **{"text": TEXT, **link})
        return finished(app)

    return open_with


def numbers(x: Any) -> npt.NDArray[np.float64]:
    """A row of numbers as Plotly sends it."""
    return np.frombuffer(base64.b64decode(x["bdata"]), x["dtype"]).astype(float)


def finished(app: AppTest) -> AppTest:
    for _ in range(60):
        if not [each for each in app.button if each.key == "stop_tokens"]:
            break
        app.run()
    return looked_at(app)


def steps(models: Path, code: str = "", count: int = 20, output: Output = GREEDY) -> list[Step]:
    loaded = load(str(models / "writer"), "cpu")
    own = capture(loaded, TEXT)
    found, refused = interventions(decode_changes(code), own)
    assert not refused
    return list(continued(loaded, own, found, output, count))


def written(app: AppTest) -> list[list[str]]:
    """The tokens of each side as the table has them."""
    table = app.dataframe[-1].value
    return [
        [each for each in table[name] if each is not None and each == each]
        for name in table
        if str(name).endswith("as written")
    ]


def raws(models: Path, found: list[Step]) -> list[str]:
    tokenizer = load(str(models / "writer"), "cpu").tokenizer
    assert tokenizer is not None
    return [str(tokenizer.convert_ids_to_tokens(step.id)) for step in found]


def test_it_opens_with_the_copier_repeating_a_phrase_and_without_its_copying_head_it_fails() -> (
    None
):
    app = finished(open_page())
    assert "Nothing is changed, so there is one text" in said(app)
    assert app.session_state["model"] == SMALL_DECODER
    (own,) = written(app)
    phrase = " ".join(COPY_TEXT.split()[:6])
    assert phrase in "".join(own).replace("Ġ", " ")
    found = re.search(r"Of all heads \*\*(L\dH\d)\*\* looks there the most", said(app))
    assert found is not None
    finished(app.button(key="switch_copying").click().run())
    assert app.session_state["change"] == f"off_{found[1]}"
    assert re.search(r"From the \*\*\d\w\w\*\* added token on they part: \*\*“\w+”", said(app))
    before, after = written(app)
    assert before == own
    assert phrase not in "".join(after).replace("Ġ", " ")


def test_without_a_change_it_writes_what_generate_writes(
    opened: Callable[..., AppTest], models: Path
) -> None:
    app = opened(count="8")
    loaded = load(str(models / "writer"), "cpu")
    ids = torch.tensor([capture(loaded, TEXT).tokens.ids])
    made = loaded.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False
    )[0, ids.shape[1] :]
    assert loaded.tokenizer is not None
    (own,) = written(app)
    assert own == loaded.tokenizer.convert_ids_to_tokens(made)
    assert "8 tokens added" in said(app)


def test_the_sentence_names_the_first_difference(
    opened: Callable[..., AppTest], models: Path
) -> None:
    app = opened(change=CHANGE)
    plain, changed = steps(models), steps(models, CHANGE)
    assert written(app) == [raws(models, plain), raws(models, changed)]
    at = next(n for n, (a, b) in enumerate(zip(plain, changed, strict=False)) if a.id != b.id)
    assert ("part at once" in said(app)) == (at == 0)
    assert f"{at + 1}{ {0: 'st', 1: 'nd', 2: 'rd'}.get(at, 'th') }" in said(app)
    if len(app.slider) > 1:
        assert app.session_state["token_by_token"] == at + 1


def test_each_tokens_row_is_the_last_querys_in_one_range(
    opened: Callable[..., AppTest], models: Path
) -> None:
    app = opened(change=CHANGE, picked="4", layer="1", head="2")
    figures = [spec(app, f"looked_{side}") for side in (0, 1)]
    for figure, code in zip(figures, ("", CHANGE), strict=True):
        row = steps(models, code, 4)[3].rows["decoder"][1].weights[2]
        np.testing.assert_allclose(numbers(figure["data"][0]["x"]), row, atol=1e-6)
    ranges = [tuple(figure["layout"]["xaxis"]["range"]) for figure in figures]
    assert ranges[0] == ranges[1]


def test_the_ten_likeliest_are_shown_with_their_chance_to_be_drawn(
    opened: Callable[..., AppTest], models: Path
) -> None:
    app = opened(temperature="1.5", top_k="3", draw_seed="5", picked="2")
    output = Output(1.5, 3, 5)
    step = steps(models, output=output)[1]
    own, chance = spec(app, "likeliest_0")["data"][:2]
    np.testing.assert_allclose(
        numbers(own["x"]), [100 * e.probability for e in step.likeliest], rtol=1e-4
    )
    np.testing.assert_allclose(
        numbers(chance["x"]), [100 * e.chance for e in step.likeliest], rtol=1e-4, atol=1e-6
    )
    assert "drawn from the 3 likeliest tokens with seed 5" in said(app)
    assert "by the model, and when drawn" in said(app)


def test_a_drawn_token_beyond_the_ten_is_told(opened: Callable[..., AppTest], models: Path) -> None:
    found = steps(models, output=Output(2.0, None, 3))
    at = next(n for n, s in enumerate(found) if s.id not in [e.id for e in s.likeliest])
    app = opened(temperature="2.0", draw_seed="3", picked=str(at + 1))
    assert "which was drawn, is less likely than all of them" in said(app)


def test_the_same_link_writes_the_same_and_another_seed_may_not(
    opened: Callable[..., AppTest], models: Path
) -> None:
    link = {"temperature": "1.0", "top_k": "10", "change": CHANGE}
    texts = [written(opened(**link, draw_seed=seed)) for seed in ("1", "1", "2")]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    assert texts[0][0] == raws(models, steps(models, "", 20, Output(1.0, 10, 1)))


def test_temperature_is_kept_apart_from_attentions_scale(opened: Callable[..., AppTest]) -> None:
    app = opened()
    assert "Attention's own scale works inside each head" in said(app)
    assert "likeliest token is taken" in said(app)
    assert app.selectbox(key="top_k").disabled


def test_a_change_without_effect_on_the_tokens_is_told(
    opened: Callable[..., AppTest], models: Path
) -> None:
    app = opened(change="times_1")
    assert "Both write the same 20 tokens" in said(app)
    assert "Their probabilities hardly differ either" in said(app)


def test_step_by_step(opened: Callable[..., AppTest], models: Path) -> None:
    own = raws(models, steps(models, count=6))
    app = opened(count="6", written="0")
    assert "No token is added yet" in said(app)
    assert not app.get("plotly_chart")
    for count in (1, 2):
        assert not app.button(key="next_token").disabled
        finished(app.button(key="next_token").click().run())
        assert written(app) == [own[:count]]
        assert app.session_state["written"] == str(count)
    assert not app.button(key="run_tokens").disabled
    finished(app.button(key="run_tokens").click().run())
    assert written(app) == [own]
    assert app.session_state["written"] == "all"
    assert app.button(key="next_token").disabled
    finished(app.button(key="start_again").click().run())
    assert app.session_state["written"] == "0"


def test_a_run_goes_on_in_slices_and_can_be_stopped(
    opened: Callable[..., AppTest], models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_MODELS", str(models))
    for name in ("FIRST_SLICE", "SLICE"):
        monkeypatch.setattr(continuing_run, name, 1e-9)
    app = open_page(model="local:writer", text="stop this text", count="30")
    assert re.search(r"\d of 30 tokens added", str(app.get("progress")[0].proto))
    app.run()
    app.button(key="stop_tokens").click().run()
    assert not app.exception
    assert int(app.session_state["written"]) < 30
    assert not [each for each in app.button if each.key == "stop_tokens"]


def test_the_slider_chooses_a_token_and_the_choice_stands_in_the_address(
    opened: Callable[..., AppTest],
) -> None:
    app = opened()
    app.slider(key="token_by_token").set_value(3).run()
    assert app.session_state["picked"] == 3
    assert not app.exception


def test_a_head_is_switched_off_and_on_here(opened: Callable[..., AppTest]) -> None:
    app = opened(layer="1", head="3")
    app.button(key="switch_head").click().run()
    assert app.session_state["change"] == "off_L1H3"
    assert "Layer 1, head 3: switched off" in said(finished(app))


def test_where_all_heads_looked_is_a_table(opened: Callable[..., AppTest], models: Path) -> None:
    app = opened(picked="3")
    app.session_state["heads_looked"] = True
    app.run()
    rows = steps(models, count=3)[2].rows["decoder"]
    table = app.dataframe[0].value
    expected = [float(head.max()) for row in rows.values() for head in row.weights]
    np.testing.assert_allclose(table["As the model is: weight"], expected, atol=1e-6)


@pytest.mark.parametrize("code", ["paint_2-b", "patch_L0"])
def test_changes_for_one_length_of_text_are_left_out_with_the_reason(
    opened: Callable[..., AppTest], code: str
) -> None:
    app = opened(change=code)
    assert "made for a text of one length, and here the text grows" in said(app)
    assert len(written(app)) == 1


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"temperature": "hot"}, "temperature “hot”"),
        ({"temperature": "nan"}, "temperature “nan”"),
        ({"temperature": "9"}, "temperature “9”"),
        ({"top_k": "4"}, "top_k “4”"),
        ({"draw_seed": "-1"}, "seed “-1”"),
        ({"count": "99"}, "count “99”"),
        ({"written": "many"}, "“many” written tokens"),
        ({"picked": "x"}, "added token “x”"),
        ({"change": "explode"}, "can't be read"),
        ({"layer": "7"}, "layer “7”"),
    ],
)
def test_what_a_link_asks_in_vain_is_told(
    opened: Callable[..., AppTest], link: dict[str, str], words: str
) -> None:
    assert words in said(opened(**link))


@pytest.mark.parametrize(
    ("name", "words"),
    [("filler", "writes no text"), ("judge", "writes no text")],
)
def test_a_model_that_writes_nothing_says_what_to_choose(
    opened: Callable[..., AppTest], name: str, words: str
) -> None:
    app = opened(name)
    assert words in said(app)
    assert "local:writer" in said(app)
    assert not app.get("plotly_chart")


@pytest.mark.usefixtures("local_models")
def test_a_model_off_the_interface_says_so() -> None:
    app = open_page(model="local:off-interface", text="a cat")
    assert not app.exception
    assert "can be looked at but not run on here" in said(app)


def test_an_encoder_decoder_writes_on_at_its_target(opened: Callable[..., AppTest]) -> None:
    app = opened("translator", text="abc", pair="xy", stack="cross", count="4")
    assert app.session_state["stack"] == "cross"
    bars = spec(app, "looked_0")["data"][0]
    assert len(numbers(bars["x"])) == 4  # the start token and abc
    app = opened("translator", text="abc", stack="encoder", count="4")
    assert app.session_state["stack"] == "decoder"


def test_the_models_limit_ends_the_text(opened: Callable[..., AppTest], models: Path) -> None:
    app = opened(text="x" * 120)  # with the start token 121 of 128
    assert "the model reads no more than 128 tokens" in said(app)
    assert [len(side) for side in written(app)] == [7]
    app = opened(text="x" * 127)
    assert "nothing can be added. Shorten it" in said(app)
    assert not app.get("plotly_chart")


def test_a_long_text_draws_the_largest_weights_only(opened: Callable[..., AppTest]) -> None:
    app = opened(text="x" * 80, count="2")
    assert len(numbers(spec(app, "looked_0")["data"][0]["x"])) == 32
    assert "The 32 tokens with the largest weights" in said(app)


def test_pieces_of_both_sides_join_to_what_the_tokenizer_reads(models: Path) -> None:
    loaded = load(str(models / "writer"), "cpu")
    own = capture(loaded, TEXT)
    found = list(continue_text(loaded, own, 10))
    ids = [each.id for each in found]
    joined = "".join(pieces(loaded, own.tokens.ids, ids))
    assert loaded.tokenizer is not None
    whole = str(loaded.tokenizer.decode([*own.tokens.ids, *ids]))
    assert whole.endswith(joined)


def test_many_readers_of_one_link_share_one_text(models: Path) -> None:
    loaded = load(str(models / "writer"), "cpu")
    own = capture(loaded, TEXT)
    writing = Writing(lambda: continued(loaded, own))

    def read() -> None:
        while not writing.has(12):
            writing.one_more(12)

    with ThreadPoolExecutor(8) as readers:
        for each in [readers.submit(read) for _ in range(8)]:
            each.result()
    assert [step.id for step in writing.steps] == [step.id for step in steps(models, count=12)]


def test_after_an_error_starting_again_tries_anew() -> None:
    def begin() -> Iterator[Step]:
        raise ModelError("No memory is left.")
        yield

    writing = Writing(begin)
    writing.one_more(3)
    assert writing.is_over and writing.error == "No memory is left."
    writing.retry()
    assert not writing.is_over and writing.error is None


def test_one_click_takes_a_model_that_writes() -> None:
    app = open_page(model="minilm", text="A cat.")
    assert "writes no text" in said(app)
    finished(app.button(key="take_writer").click().run())
    assert app.session_state["model"] == SMALL_DECODER
    assert len(written(app)) == 1
