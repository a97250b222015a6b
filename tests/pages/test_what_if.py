"""The page What if without a browser: changes, both runs, and which heads matter."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from streamlit.testing.v1 import AppTest

from explorer import effects
from explorer.capture import Capture, capture
from explorer.changes import Change, decode_changes
from explorer.changes_applied import interventions
from explorer.loading import LoadedModel
from explorer.models import load
from explorer.outcomes import Question
from explorer.ui import controls, what_if, what_if_words
from explorer.ui.change_builder import ABOUT, TITLES
from explorer.ui.which_heads import Sweep
from tests.headed_models import save_headed_models
from tests.pages import driven
from tests.pages.driven import decoded, looked_at, said, spec

TEXT = "a cat a cat"
open_page = partial(driven.opened, "what_if")


@pytest.fixture(scope="module")
def headed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_headed_models(tmp_path_factory.mktemp("headed"))


@pytest.fixture
def opened(headed: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Opens the page on a small model with a head, by its name."""
    monkeypatch.setenv("EXPLORER_MODELS", str(headed))

    def open_with(name: str, **link: str) -> AppTest:
        return open_page(model=f"local:{name}", **{"text": TEXT, **link})

    return open_with


def minilm(**link: str) -> AppTest:
    return open_page(model="minilm", text=controls.DEFAULT_TEXT, **link)


def chart(app: AppTest, key: str) -> npt.NDArray[np.float64]:
    """The numbers of the cells that the colour bar is for."""
    return decoded(next(t for t in spec(app, key)["data"] if "colorbar" in t)["z"])


def both(loaded: LoadedModel, code: str, text: str = TEXT) -> tuple[Capture, Capture]:
    own = capture(loaded, text)
    found, refused = interventions(decode_changes(code), own)
    assert not refused
    return own.changed([]), own.changed(found)


def swept(app: AppTest) -> AppTest:
    """The same when all heads have been tried, by a link or the button; each run tries some."""
    if not [each for each in app.button if each.key == "stop_heads"]:
        app.button(key="try_heads").click().run()
    for _ in range(60):
        if not [each for each in app.button if each.key == "stop_heads"]:
            break
        app.run()
    return looked_at(app)


def test_it_opens_with_something_to_see_and_nothing_changed() -> None:
    app = open_page()
    assert re.search(r"Nothing is changed, and nothing differs:\*\* [\d,]+ numbers", said(app))
    assert "equal to the last bit" in said(app)
    np.testing.assert_array_equal(chart(app, "head_before"), chart(app, "head_after"))


def test_two_texts_and_their_likeness_before_and_after() -> None:
    app = minilm(change="off_L5H11", second=what_if.SECOND_TEXT)
    loaded = load("minilm", "cpu")
    first = both(loaded, "off_L5H11", controls.DEFAULT_TEXT)
    second = both(loaded, "off_L5H11", what_if.SECOND_TEXT)
    before, after = (effects.similarity(*pair) for pair in zip(first, second, strict=True))
    assert f"cosine goes from **{before:.3f}** to **{after:.3f}**" in said(app)
    assert ("less alike" in said(app)) == (after < before)
    assert "Layer 5, head 11: switched off" in said(app)


def test_the_next_token_before_and_after(opened: Callable[..., AppTest], headed: Path) -> None:
    code = "off_L0H1 times_0.5_L1"
    app = opened("writer", change=code)
    before, after = both(load(str(headed / "writer"), "cpu"), code)
    found = effects.predictions(before, after, top=1)
    first = found.ids[0]
    shares = [100 * float(run.logits[-1].double().softmax(-1)[first]) for run in (before, after)]  # type: ignore[index]
    assert f"from **{shares[0]:.1f} %** to **{shares[1]:.1f} %**" in said(app)
    table = app.dataframe[0].value
    assert table["before"].iloc[0] == pytest.approx(shares[0] / 100)
    assert (np.diff(table["before"]) <= 0).all()
    bars = spec(app, "outcome_bars")["data"]
    assert [bar["name"] for bar in bars if "name" in bar] == ["before", "after"]


def test_another_position_and_a_token_of_ones_own(
    opened: Callable[..., AppTest], headed: Path
) -> None:
    app = opened("writer", change="off_L1", at="3", watch="z")
    loaded = load(str(headed / "writer"), "cpu")
    before, after = both(loaded, "off_L1")
    assert loaded.tokenizer is not None
    entry = loaded.tokenizer.convert_tokens_to_ids("z")
    changed = effects.log_probability(after, entry, 3) - effects.log_probability(before, entry, 3)
    assert "**“z”**" in said(app)
    assert f"{abs(changed):.2f} nats" in said(app)


def test_a_hidden_word_is_filled_in(opened: Callable[..., AppTest]) -> None:
    app = opened("filler", change="off_L0H0")
    assert app.selectbox(key="hide").value == 8  # the last word, from its space on
    assert app.selectbox(key="at").value == 9
    assert "**“c”**" in said(app)  # the hidden letter is watched
    app = opened("filler", hide="none")
    assert app.selectbox(key="hide").value == what_if.NO_WORD


@pytest.mark.parametrize("name", ["judge", "tagger"])
def test_classes_and_labels_have_their_names(opened: Callable[..., AppTest], name: str) -> None:
    app = opened(name, change="off_L0", watch="1")
    assert "**“fair”**" in said(app)
    assert set(app.dataframe[0].value["entry"]) == {"bad", "fair", "good"}


@pytest.mark.usefixtures("local_models")
@pytest.mark.parametrize("name", ["causal", "two-stacks", "denoiser", "sinks"])
def test_without_a_head_the_hidden_states_are_compared(name: str) -> None:
    app = open_page(model=f"local:{name}", text="a cat", change="off_L0H0")
    assert "The last hidden states have moved by" in said(app)


@pytest.mark.usefixtures("local_models")
def test_a_model_that_does_not_let_our_attention_in_says_why() -> None:
    app = open_page(model="local:off-interface", text="a cat", change="off_L0H0")
    assert "can be looked at but not changed: it computes attention in its own code" in said(app)
    assert not app.get("plotly_chart")


@pytest.mark.usefixtures("local_models")
def test_another_stack_is_changed_by_its_number() -> None:
    app = open_page(model="local:two-stacks", text="a cat", pair="a dog", change="off_S2L1H0")
    assert "Cross, layer 1, head 0: switched off" in said(app)


def test_undo_all_brings_back_the_model_to_the_last_bit() -> None:
    app = minilm(change="off_L0H0 times_2")
    assert "Nothing is changed" not in said(app)
    app.button(key="undo_all").click().run()
    assert app.session_state["change"] == ""
    assert "equal to the last bit" in said(app)


def test_changes_are_removed_one_by_one() -> None:
    app = minilm(change="off_L0H0 times_2 uniform_L3")
    app.button(key="remove_1").click().run()
    assert app.session_state["change"] == "off_L0H0 uniform_L3"


@pytest.mark.parametrize("what", list(TITLES))
def test_every_change_can_be_put_together_and_added(what: str) -> None:
    app = minilm()
    app.selectbox(key="draft_what").select(what).run()
    assert ABOUT[what] in said(app)  # type: ignore[index]
    if what in ("nokeys", "novalue"):
        assert app.button(key="add_change").disabled
        app.multiselect(key="draft_keys").select(2).run()
    app.button(key="add_change").click().run()
    assert not app.exception
    (change,) = decode_changes(app.session_state["change"])
    assert change.what == what
    assert (change.layers, change.heads) == ((0,), (0,))


def test_no_layers_and_heads_chosen_means_all() -> None:
    app = minilm()
    app.multiselect(key="draft_layers").set_value([]).run()
    app.multiselect(key="draft_heads").set_value([]).run()
    app.button(key="add_change").click().run()
    assert decode_changes(app.session_state["change"]) == [Change("off")]


def test_a_cell_is_painted_by_keyboard() -> None:
    app = minilm()
    app.selectbox(key="draft_what").select("paint").run()
    app.button(key="draft_flip").click().run()
    app.button(key="add_change").click().run()
    assert not app.exception
    assert chart(app, "head_before")[0, 0] > 0
    assert np.isnan(chart(app, "head_after")[0, 0])


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"change": "explode_L1"}, "can't be read"),
        ({"change": "off_L99"}, "There is no layer 99 here"),
        ({"change": "off_L1H77"}, "There is no head 77"),
        ({"change": "nokeys_400"}, "There is no token 400"),
        ({"change": "paint_2-b"}, "painted for 2 tokens"),
        ({"layer": "77"}, "layer"),
        ({"second": ""}, "second text"),
        ({"tried": "no"}, "It can be “yes” only"),
    ],
)
def test_what_a_link_asks_in_vain_is_told(link: dict[str, str], words: str) -> None:
    app = open_page(model="minilm", text=controls.DEFAULT_TEXT, **link)
    assert words in said(app)


def test_patching_asks_for_a_second_text_of_equal_length(opened: Callable[..., AppTest]) -> None:
    app = opened("writer", change="patch_L0", second="the dog ran")
    assert "between texts of equal length" not in said(app)
    assert "output taken over from the second text" in said(app)
    app = opened("writer", change="patch_L0", second="a dog")
    assert "has 6 tokens, and this one 12" in said(app)
    app = opened("writer", change="patch_L0")
    assert "Please type some text" in said(app)


def test_a_query_left_without_keys_is_told(opened: Callable[..., AppTest]) -> None:
    app = opened("writer", change="nofirst_L0H0")
    assert "1 query of one head has no key left" in said(app)


def test_a_head_switched_off_keeps_its_weights_and_says_so() -> None:
    app = minilm(change="off_L2H3", layer="2", head="3")
    before, after = chart(app, "head_before"), chart(app, "head_after")
    np.testing.assert_allclose(before, after, atol=1e-6)
    assert "weights are the same in both" in said(app)
    assert "It is switched off" in said(app)
    app.button(key="switch_head").click().run()
    assert app.session_state["change"] == ""


def test_a_changed_scale_is_seen_in_the_map_within_one_range() -> None:
    app = minilm(change="times_4", layer="1", head="1")
    before, after = spec(app, "head_before")["data"], spec(app, "head_after")["data"]
    tops = {trace["zmax"] for trace in (*before, *after) if "zmax" in trace}
    assert len(tops) == 1
    assert "The largest change is" in said(app)


def test_each_head_is_tried_and_the_strongest_is_named(
    opened: Callable[..., AppTest], headed: Path
) -> None:
    app = swept(opened("writer"))
    loaded = load(str(headed / "writer"), "cpu")
    own = capture(loaded, TEXT)
    entry = effects.predictions(own, own, top=1).ids[0]
    question = Question("next", 11, entry)
    found = list(effects.each_head_off([own], "decoder", lambda now: question.number([], now)))
    expected = np.array([each.change for each in found]).reshape(2, 4)
    np.testing.assert_allclose(chart(app, "effects"), expected, atol=1e-5)
    worst = min(found, key=lambda each: each.change)
    assert f"The loss of **L{worst.layer}H{worst.head}** hurts the most" in said(app)
    app.button(key="open_hurts").click().run()
    assert (app.session_state["layer"], app.session_state["head"]) == (worst.layer, worst.head)
    app.button(key="switch_hurts").click().run()
    assert app.session_state["change"] == f"off_L{worst.layer}H{worst.head}"
    assert app.get("plotly_chart")  # the effects stay: they are those of the model as it is


def test_which_heads_carry_the_likeness_of_two_texts() -> None:
    app = swept(minilm(second=what_if.SECOND_TEXT))
    effects_of_heads = app.dataframe[0].value
    assert len(effects_of_heads) == 72
    worst = effects_of_heads.sort_values(effects_of_heads.columns[3]).iloc[0]
    assert f"Without **{worst['name']}** the two texts become the least alike" in said(app)


def test_a_link_shows_the_heads_tried_as_the_page_did(opened: Callable[..., AppTest]) -> None:
    app = opened("writer")
    assert "tried" not in app.query_params
    swept(app)
    assert "yes" in app.query_params["tried"]
    linked = opened("writer", tried="yes")
    assert "0 of 8 heads tried" in str(linked.get("progress")[0].proto)
    shown = swept(linked)
    np.testing.assert_array_equal(chart(shown, "effects"), chart(app, "effects"))
    assert "yes" in shown.query_params["tried"]


def test_another_text_takes_the_heads_tried_out_of_the_link(
    opened: Callable[..., AppTest],
) -> None:
    app = swept(opened("writer", tried="yes"))
    app.text_area(key="text").set_value("another text").run()
    assert "tried" not in app.query_params
    assert app.button(key="try_heads").label == "Switch off each head in turn"
    app.text_area(key="text").set_value(TEXT).run()
    assert "yes" in app.query_params["tried"]
    assert chart(app, "effects").size


def test_what_takes_long_waits_for_the_button_also_by_a_link(
    opened: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.ui.which_heads.BY_LINK", 0.0)
    app = opened("writer", tried="yes")
    assert "waits for the button" in said(app)
    assert "tried" in app.query_params
    assert "waits for the button" not in said(swept(app))
    app.text_area(key="text").set_value("another text").run()
    assert "waits for the button" not in said(app)


def test_two_runs_of_the_page_at_once_try_each_head_once() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def steps() -> Iterator[effects.HeadEffect]:
        for head in range(3):
            inside.set()
            assert go_on.wait(60)
            yield effects.HeadEffect(0, head, 0.0)

    sweep = Sweep((), 3, steps())
    first = threading.Thread(target=sweep.go_on)
    first.start()
    assert inside.wait(60)
    sweep.go_on()  # the first is at work: an iterator can't be asked twice at once
    assert sweep.found == [] and not sweep.is_over
    go_on.set()
    first.join()
    while not sweep.is_over:
        sweep.go_on()
    assert [each.head for each in sweep.found] == [0, 1, 2]


def test_a_sweep_can_be_stopped(
    opened: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.ui.which_heads.SLICE", 0.0001)
    app = opened("writer")
    app.button(key="try_heads").click().run()
    assert "0 of 8 heads tried" in str(app.get("progress")[0].proto)
    app.run()
    app.button(key="stop_heads").click().run()
    assert not app.exception
    assert re.search(r"Stopped after \d of 8 heads", said(app))


def test_a_question_that_changes_ends_the_sweep(
    opened: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.ui.which_heads.SLICE", 0.0001)
    app = opened("writer")
    app.button(key="try_heads").click().run()
    app.text_area(key="text").set_value("another text").run()
    assert not [each for each in app.button if each.key == "stop_heads"]


def test_a_model_too_slow_for_all_heads_tries_one_layer(
    opened: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.ui.which_heads.LONGEST", 1e-6)
    app = opened("writer", layer="1")
    assert "4 runs" in said(app)
    assert "only those of layer 1 are tried" in said(app)
    assert np.isnan(chart(swept(app), "effects")[0]).all()


def test_layers_and_positions_are_shown_when_opened(
    opened: Callable[..., AppTest], headed: Path
) -> None:
    app = opened("writer", change="off_L1H0")
    app.session_state["drift"] = app.session_state["divergence"] = True
    app.run()
    assert not app.exception
    before, after = both(load(str(headed / "writer"), "cpu"), "off_L1H0")
    np.testing.assert_allclose(
        chart(app, "drift_0"), effects.drift(before, after).numpy(), atol=1e-6
    )
    assert "The first to move is what leaves layer 1" in said(app)
    kl = effects.divergence_by_position(before, after)
    assert f"Mean over all positions: **{float(kl.mean()):.3f}** nats" in said(app)


def test_the_page_says_what_it_means_and_what_not() -> None:
    words = said(minilm())
    assert "not an influence" in words and "others may do its work" in words


def test_heads_can_be_tried_with_the_changes_on(
    opened: Callable[..., AppTest], headed: Path
) -> None:
    app = swept(opened("writer", change="off_L1H2", besides="yes"))
    own = capture(load(str(headed / "writer"), "cpu"), TEXT)
    kept, _ = interventions(decode_changes("off_L1H2"), own)
    question = Question("next", 11, effects.predictions(own, own, top=1).ids[0])
    found = effects.each_head_off([own], "decoder", lambda now: question.number([], now), [kept])
    expected = np.array([each.change for each in found]).reshape(2, 4)
    np.testing.assert_allclose(chart(app, "effects"), expected, atol=1e-5)
    assert expected[1, 2] == 0  # it is off already


def test_outputs_that_are_not_numbers_are_told(opened: Callable[..., AppTest]) -> None:
    app = opened("not-numbers", second="a dog", change="off_L0H0")
    assert "not finite numbers" in said(app)
    assert "No head has an effect that is a number here" in said(swept(app))
    assert "equal to the last bit" in said(opened("not-numbers", second="a dog"))


@pytest.mark.parametrize(
    "text", ["", "   ", "<b>x</b> &lt; $119 :red[x]", "日本語 😀 \u202e", "word " * 100]
)
def test_any_text_is_read_or_answered_with_a_sentence(
    opened: Callable[..., AppTest], text: str
) -> None:
    app = opened("writer", text=text, change="off_L0H0 nokeys_2")
    assert app.get("plotly_chart") or app.error or app.warning


@pytest.mark.parametrize(
    ("value", "written"), [(0.0, "0"), (0.5, "+0.500"), (-2.05, "−2.050"), (3e-7, "+3e-07")]
)
def test_changes_have_their_sign(value: float, written: str) -> None:
    assert what_if_words.signed(value) == written


def test_probabilities_that_look_alike_get_more_digits() -> None:
    found = effects.Prediction([4], [0.002], [0.002004], [0.002], 0.0)
    words = what_if_words.predicted(found, {4: "cat"}, 4)
    assert "from **0.2\u00a0%** to **0.2004\u00a0%**" in words


def test_a_small_decoder_of_ones_own_comes_first_with_a_phrase_to_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(what_if, "SMALL_DECODER", "minilm")  # any of the bundled ones stands in
    app = open_page()
    assert app.text_area(key="text").value == what_if.COPY_TEXT
    assert what_if.COPY_TEXT.count("saw the blue") == 2


def test_the_head_whose_loss_hurts_the_copy_most_is_found_and_breaks_it() -> None:
    app = swept(open_page())
    own = capture(load(what_if.SMALL_DECODER, "cpu"), what_if.COPY_TEXT)
    copied = effects.predictions(own, own, top=1)
    assert copied.before[0] > 0.9
    found = effects.each_head_off(
        [own], "decoder", lambda now: effects.log_probability(now[0], copied.ids[0])
    )
    worst = min(found, key=lambda each: each.change)
    assert f"The loss of **L{worst.layer}H{worst.head}** hurts the most" in said(app)
    app.button(key="switch_hurts").click().run()
    assert "The likeliest is now" in said(app)  # the copy is broken
    linked = open_page(change=app.session_state["change"])
    assert f"log-probability changes by −{-worst.change:.2f} nats" in said(linked)
