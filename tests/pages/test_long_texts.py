"""The page Long texts."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from explorer.long_sources import own_heads
from explorer.long_texts import SAMPLES
from explorer.maps import overview
from explorer.masks import causal
from explorer.models import load
from explorer.ui import long_run, long_whose
from explorer.ui.long_kept import Slot, keep_text, text_slot
from explorer.ui.words import small_share
from tests.pages import driven
from tests.pages.driven import decoded, said, spec

opened = partial(driven.opened, "long_texts")
SENTENCE = "The grey cat sat on the mat. A needle lay in the hay. "
UNSEEN = "0123456789ab"


def pasted(text: str, **address: str) -> AppTest:
    """The page with a text of the reader's own, as from a link on the same running app."""
    return opened(**{"from": "paste", "doc": keep_text("Pasted text.", text), **address})


def weights(app: AppTest) -> Any:
    """The bins of the large map."""
    (trace,) = [t for t in spec(app, "long_map")["data"] if t.get("colorbar")]
    return decoded(trace["z"])


def page_html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def labelled(app: AppTest, label: str) -> Any:
    (button,) = [button for button in app.button if button.label == label]
    return button


def test_a_sample_of_two_thousand_tokens_is_shown_at_once() -> None:
    app = opened()
    assert not app.exception
    assert re.search(r"\*\*2,\d\d\d tokens\*\* · 12 heads", said(app))
    assert weights(app).shape == (256, 256)
    assert len(spec(app, "long_heads")["data"][1]["x"]) == 12


def test_the_map_is_the_heads_own_weights() -> None:
    app = pasted(SENTENCE, head="3", layer="2", rule="causal")
    tokens, record = own_heads(load("minilm", "cpu"), SENTENCE, layer=2, mask=causal())
    expected = record.weights([3])[0].numpy()
    expected[np.triu_indices(len(tokens), 1)] = np.nan  # forbidden cells hold no value
    assert weights(app) == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_means_and_largest_weights_are_those_of_every_bin() -> None:
    text = SENTENCE * 40  # 600 tokens, so that bins hold two or three
    _, record = own_heads(load("minilm", "cpu"), text)
    found = overview(record, 256).picture
    for kind, expected in (("mean", found.mean), ("largest", found.largest)):
        app = pasted(text, picture=kind)
        assert weights(app) == pytest.approx(expected[0].numpy(), abs=1e-6)
        assert kind in spec(app, "long_map")["data"][0]["colorbar"]["title"]["text"]


def test_a_window_from_a_link_is_computed_exactly() -> None:
    text = SENTENCE * 40
    app = pasted(text, zoom="0-400.100-500~40-60.200-230", head="1")
    _, record = own_heads(load("minilm", "cpu"), text)
    expected = record.weights([1], slice(40, 60), slice(200, 230))[0].numpy()
    assert weights(app) == pytest.approx(expected, abs=1e-6)
    assert [b.label for b in app.button if (b.key or "").startswith("crumb")] == [
        "Whole text",
        "0–399 × 100–499",
    ]
    assert "**40–59 × 200–229**" in said(app)


def test_three_steps_in_reach_single_tokens_and_a_pair_and_lead_back() -> None:
    app = pasted(SENTENCE * 40)
    for _ in range(3):
        labelled(app, "In on the strongest, ×4").click().run()
    assert not app.exception
    assert app.session_state["zoom"].count("~") == 2
    pair = re.fullmatch(r"(\d+)-(\d+)", app.session_state["cell"])
    assert pair is not None
    _, record = own_heads(load("minilm", "cpu"), SENTENCE * 40)
    query, key = int(pair[1]), int(pair[2])
    strongest = float(record.weights([0], [query], [key]))
    assert strongest == pytest.approx(float(np.nanmax(weights(app))), abs=1e-6)
    assert f"{100 * strongest:.1f} % of its weight" in said(app)
    app.button(key="crumb_0").click().run()
    assert app.session_state["zoom"] == ""


def test_positions_can_be_given_as_numbers_in_either_order() -> None:
    app = pasted(SENTENCE * 20)
    for name, value in (("rows_from", 90), ("rows_to", 80), ("keys_from", 0), ("keys_to", 4)):
        app.number_input(key=name).set_value(value)
    app.button(key="show_positions").click().run()
    assert app.session_state["zoom"] == "80-91.0-5"
    assert weights(app).shape == (11, 5)


def test_a_word_is_found_counted_and_walked() -> None:
    app = pasted(SENTENCE * 40, find="NEEDLE")
    assert "Place 1 of 40" in said(app)
    labelled(app, "Previous").click().run()
    assert "Place 40 of 40" in said(app)
    labelled(app, "Its row").click().run()
    first, end = map(int, app.session_state["zoom"].split(".")[0].split("-"))
    labelled(app, "Next").click().run()
    assert app.session_state["hit"] == 0
    assert (first, end) != (0, 48) and app.session_state["zoom"].startswith("0-48.")
    assert '<mark class="word">needle</mark>' in page_html(app)


def test_a_word_that_is_not_there_is_said_so() -> None:
    app = pasted(SENTENCE, find="<b>zebra</b>")
    assert "is not in the text" in said(app)
    assert not any("<b>" in each.value for each in (*app.markdown, *app.caption, *app.warning))


def test_who_looks_far_away_is_a_list_that_leads_there() -> None:
    text = "Zanzibar is far. " + SENTENCE * 20 + "Zanzibar is near."
    app = pasted(text, far="128", rule="causal")
    table = app.dataframe[0].value
    assert len(table) == 50
    away = [int(each.replace(",", "")) for each in table["tokens away"]]
    assert min(away) >= 128
    shares = [float(each.removesuffix(" %")) for each in table["weight"]]
    assert shares == sorted(shares, reverse=True)
    assert app.selectbox(key="far_link").value is None
    assert app.selectbox(key="far_link").placeholder == "Choose one …"
    app.selectbox(key="far_link").select(3).run()
    assert not app.exception
    head, query, key = (table.iloc[3][name] for name in ("head", "query", "key"))
    assert app.session_state["head"] == head
    assert app.session_state["cell"] == f"{query.split()[0]}-{key.split()[0]}".replace(",", "")
    assert app.selectbox(key="far_link").value is None


def test_no_link_is_found_beyond_a_window_that_is_shorter() -> None:
    app = pasted(SENTENCE * 20, rule="window", width="16", far="128")
    assert "No weight goes so far" in said(app)


@pytest.mark.parametrize("model", ["minilm", "copier"])
def test_a_model_that_reads_less_reads_in_pieces_and_the_page_says_so(model: str) -> None:
    app = pasted(SENTENCE * 60, whose="model", model=model)
    assert not app.exception
    assert "overlapping pieces" in said(app)
    assert "special tokens of its own" in said(app)
    names = {t.get("name") for t in spec(app, "long_map")["data"]} - {None}
    expected = "not computed" if model == "minilm" else "forbidden by the mask, or never"
    assert any(name.startswith(expected) for name in names)
    assert np.isnan(weights(app)).any()


def test_a_model_that_reads_all_of_it_reads_it_at_once() -> None:
    app = pasted(SENTENCE, whose="model", layer="5", head="2")
    assert not app.exception
    assert "overlapping pieces" not in said(app)
    assert weights(app).sum(1) == pytest.approx(np.ones(len(weights(app))), abs=1e-5)


def test_nothing_long_runs_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_run, "AT_ONCE", 0.0)
    app = pasted(SENTENCE * 30 + "Asked for.", zoom="0-20.0-20")
    assert "tokens** · 12 heads" in said(app) and "about" in said(app)
    assert not app.get("plotly_chart")
    labelled(app, "Compute").click().run()
    assert app.get("plotly_chart")
    assert weights(app).shape == (20, 20)  # the link's part
    app.run()
    assert app.get("plotly_chart")  # kept: not asked for again


def test_a_text_is_pasted_and_stands_in_the_address_by_its_number() -> None:
    app = opened(**{"from": "paste"})
    assert "Paste a text" in app.info[0].value
    app.text_area(key="long_paste").set_value(SENTENCE).run()
    assert not app.exception
    assert app.session_state["doc"] == keep_text("", SENTENCE)
    assert weights(app).shape[0] == len(own_heads(load("minilm", "cpu"), SENTENCE)[0])


def test_another_text_begins_at_the_whole_of_it() -> None:
    app = pasted(SENTENCE * 2, zoom="0-10.0-10", cell="3-4")
    app.text_area(key="long_paste").set_value(SENTENCE * 3).run()
    assert (app.session_state["zoom"], app.session_state["cell"]) == ("", "")


def test_a_text_that_is_no_longer_kept_is_asked_for_and_the_rest_of_the_link_stays() -> None:
    text = SENTENCE + "Forgotten."
    digest = keep_text("", text)
    text_slot.clear()
    app = opened(**{"from": "paste", "doc": digest, "zoom": "0-5.0-5", "head": "7"})
    assert "not here any more" in app.warning[0].value
    app.text_area(key="long_paste").set_value(text).run()
    assert not app.exception
    assert app.session_state["head"] == 7
    assert weights(app).shape == (5, 5)


@pytest.mark.parametrize(
    ("data", "name", "sentence"),
    [
        (b"%PDF-1.7 ...", "a.pdf", "is a PDF"),
        (b"", "empty.txt", "is empty"),
        (bytes(range(256)) * 8, "noise.bin", "is not a text"),
    ],
)
def test_a_file_that_is_no_text_is_answered_with_a_sentence(
    data: bytes, name: str, sentence: str
) -> None:
    app = opened(**{"from": "file"})
    app.file_uploader(key="long_file").upload(name, data).run()
    assert not app.exception
    assert sentence in app.error[0].value.replace("\\", "")


def test_a_file_is_read_its_encoding_named_and_another_can_be_tried() -> None:
    app = opened(**{"from": "file"})
    text = "Der Bär läuft über die Straße. " * 20
    app.file_uploader(key="long_file").upload("bär.txt", text.encode("utf-16")).run()
    assert not app.exception
    assert "read as UTF-16" in said(app)
    assert "Straße" in page_html(app)
    app.file_uploader(key="long_file").upload("bär.txt", text.encode("cp1252")).run()
    app.selectbox(key="long_encoding").select("cp1252").run()
    assert "read as Latin" in said(app)
    assert "Straße" in page_html(app)


def test_a_text_that_is_too_long_can_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_whose, "MOST_TOKENS", 20)
    app = pasted(SENTENCE * 2)
    assert "at most 20 are shown" in app.warning[0].value
    app.toggle(key="cut").set_value(True).run()
    assert not app.exception
    assert weights(app).shape == (20, 20)


def test_markup_in_a_text_is_text() -> None:
    app = pasted("<script>alert(1)</script> & <b>bold</b> $x$ [a](javascript:b) " * 3, cell="0-1")
    assert not app.exception
    assert "&lt;script&gt;" in page_html(app) and "<script>" not in page_html(app)


@pytest.mark.parametrize("text", ["x", "one two"])
def test_the_shortest_texts_are_drawn(text: str) -> None:
    app = pasted(text)
    assert not app.exception
    labelled(app, "In on the strongest, ×4").click().run()
    assert not app.exception


@pytest.mark.parametrize(
    "address",
    [
        {"zoom": "5-3.0-1"},
        {"zoom": "0-99999.0-5"},
        {"zoom": "x"},
        {"cell": "9999-0"},
        {"cell": "-"},
        {"sample": "../etc/passwd"},
        {"from": "ftp"},
        {"whose": "theirs"},
        {"rule": "star"},
        {"width": "3", "rule": "window"},
        {"head": "99"},
        {"layer": "abc"},
        {"far": "7"},
        {"find": "the", "hit": "99999"},
    ],
)
def test_a_wrong_link_falls_back_with_a_word(address: dict[str, str]) -> None:
    app = opened(**address)
    assert not app.exception
    assert len(app.warning) == 1
    assert weights(app).shape == (256, 256)


def test_a_wrong_number_of_a_text_is_said_so() -> None:
    app = opened(**{"from": "paste", "doc": "../../x"})
    assert not app.exception
    assert "no text's number" in app.warning[0].value.replace("\\", "")


def test_a_number_that_no_text_has_is_said_so() -> None:
    app = opened(**{"from": "file", "doc": UNSEEN})
    assert "not here any more" in app.warning[0].value


def test_every_sample_can_be_chosen() -> None:
    app = opened()
    assert app.selectbox(key="sample").options == [
        f"{each.title} · {each.tokens:,} tokens" for each in SAMPLES.values()
    ]


@pytest.mark.parametrize("whose", ["layer", "random", "model"])
@pytest.mark.parametrize(
    "model",
    ["window", "sinks", "causal", "two-stacks", "denoiser", "off-interface", "no-numbers"],
)
def test_every_kind_of_model_is_shown_or_refused_with_a_sentence(
    model: str, whose: str, local_models: None
) -> None:
    app = pasted(SENTENCE, model=f"local:{model}", whose=whose, layer="1")
    assert not app.exception
    assert app.error or app.get("plotly_chart")


def test_a_decoders_sliding_window_is_drawn_as_forbidden(local_models: None) -> None:
    app = pasted(SENTENCE, model="local:window", whose="model")
    shown = weights(app)
    place = np.arange(len(shown))
    seen = (place[:, None] >= place) & (place[:, None] - place < 3)  # its window: three keys
    assert np.array_equal(np.isfinite(shown), seen)


@pytest.mark.parametrize("model", ["no-tokenizer", "broken"])
def test_a_model_that_reads_no_text_is_refused(model: str, local_models: None) -> None:
    app = pasted(SENTENCE, model=f"local:{model}")
    assert not app.exception
    assert app.error


def test_of_a_text_beyond_all_measure_the_beginning_is_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_whose, "MAX_CHARACTERS", 100)
    app = pasted("word " * 200_001)  # the tokenizer takes 1,000,000 characters
    assert "more than 20 tokens" in app.warning[0].value
    app.toggle(key="cut").set_value(True).run()
    assert not app.exception
    assert weights(app).shape == (20, 20)


def test_a_model_that_gives_whole_tables_is_not_asked_for_too_large_ones(
    local_models: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_run, "MOST_TABLES", 1000)
    app = pasted(SENTENCE, model="local:off-interface", whose="model")
    assert not app.exception
    assert "makes whole tables" in app.error[0].value
    app = pasted(SENTENCE, model="local:window", whose="model")
    assert app.get("plotly_chart") and not app.error


def test_both_parts_of_the_work_tell_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, list[float]] = {}

    def progressed(label: str) -> Callable[[float], None]:
        return told.setdefault(label, []).append

    monkeypatch.setattr(long_run, "progressed", progressed)
    assert not pasted(SENTENCE * 60 + "Told.").exception  # more than one piece of 512 tokens
    assert list(told) == ["Queries and keys", "All weights"]
    for shares in told.values():
        assert shares == sorted(shares) and shares[-1] == 1


def test_signs_that_turn_the_text_about_are_shown_as_codes() -> None:
    app = pasted("before \u202eafter \u2067isolated שלום")
    assert "\u202e" not in page_html(app) and "\u2067" not in page_html(app)
    assert "⟨U+202E⟩after" in page_html(app)
    assert "שלום" in page_html(app)


def test_a_found_word_stands_near_the_top_of_its_passage() -> None:
    app = pasted("row\n" * 100 + "zebra" + "\nrow" * 100, find="zebra")
    (box,) = [part for part in page_html(app).split("<div")[1:] if "passage" in part]
    assert box.split('<mark class="word">')[0].count("row") == 8


def test_one_token_has_one_head_and_no_line_and_no_far_links() -> None:
    app = pasted("cat")
    assert "**1 token** · 12 heads" in said(app)
    assert "no other to look at" in said(app)
    assert len(app.get("plotly_chart")) == 2  # the map and the small maps


def test_a_wrong_distance_of_a_link_names_the_one_that_is_shown() -> None:
    app = opened(far="7")
    assert "Showing far 128" in app.warning[0].value
    assert app.selectbox(key="far").value == 128


def test_tiny_shares_are_no_zeros() -> None:
    given = (0.0, 1e-9, 3.2e-5, 0.0004, 0.0012, 0.25)
    expected = ["0 %", "0 %", "0.003 %", "0.04 %", "0.1 %", "25.0 %"]
    assert [small_share(value) for value in given] == expected


def test_what_another_window_computes_is_waited_for() -> None:
    slot: Slot[int] = Slot()
    entered, done = threading.Event(), []

    def work() -> int:
        entered.set()
        time.sleep(0.3)
        done.append(1)
        return 7

    other = threading.Thread(target=lambda: slot.filled(work))
    other.start()
    entered.wait()
    assert slot.filled(work) == 7
    other.join()
    assert len(done) == 1


def test_a_pass_that_was_broken_off_leaves_the_place_free() -> None:
    slot: Slot[int] = Slot()

    def broken() -> int:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        slot.filled(broken)
    assert slot.filled(lambda: 3) == 3
