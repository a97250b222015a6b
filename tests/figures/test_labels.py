"""Token text as Plotly will draw it: nothing vanishes, reorders, breaks or turns into markup."""

from __future__ import annotations

import pytest

from explorer.figures.labels import hover_label, hover_texts, tick_label, tick_stride, ticks


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("<s>", "&#60;s&#62;"),
        ("a<br>b", "a&#60;br&#62;b"),
        ("&lt;", "&#38;lt;"),
        ("$119", "&#36;119"),
        ("#000001", "&#35;000001"),
        ("</script>", "&#60;/script&#62;"),
        ("%{z}", "%{z}"),
        ("2024-01", "2024-01"),
    ],
)
def test_markup_is_escaped_exactly_as_typed(token: str, label: str) -> None:
    assert tick_label(token) == label
    assert hover_label(token) == label


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("", "∅"),
        (" ", "·"),
        ("  two", "··two"),
        ("end ", "end·"),
        ("a  b", "a··b"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        ("a\x00b", "a⟨U+0000⟩b"),
        ("\u202eevil", "⟨U+202E⟩evil"),
        ("\u00a0", "⟨U+00A0⟩"),
        ("\ufeffx", "⟨U+FEFF⟩x"),
        ("\ud83d", "\ufffd"),
        ("\u0301", "◌\u0301"),
    ],
)
def test_what_would_vanish_or_reorder_shows_as_a_sign(token: str, label: str) -> None:
    assert tick_label(token) == label


def test_a_single_space_between_words_stays_a_space() -> None:
    assert tick_label("😀 (1/4)") == "😀 (1/4)"


def test_joined_emoji_and_accents_stay_whole() -> None:
    assert tick_label("👩‍👩‍👧") == "👩‍👩‍👧"
    assert tick_label("naïve") == "naïve"


def test_right_to_left_text_is_isolated() -> None:
    assert tick_label("שלום") == "\u2068שלום\u2069"
    assert tick_label("שלום & co") == "\u2068שלום &#38; co\u2069"


def test_a_long_token_is_cut_to_sixteen_columns_and_kept_whole_in_the_tooltip() -> None:
    token = "anticonstitutionnellement"
    assert tick_label(token) == "anticonstitutio…"
    assert hover_label(token) == token


def test_wide_characters_count_two_columns() -> None:
    assert tick_label("日本語の長いトークンです") == "日本語の長いト…"


def test_the_cut_comes_before_the_escaping() -> None:
    assert tick_label("&" * 30) == "&#38;" * 15 + "…"


def test_the_cut_does_not_split_a_joined_emoji() -> None:
    label = tick_label("x" * 13 + "👩‍👩‍👧y")
    assert label == "x" * 13 + "…"


def test_stacked_marks_are_bounded() -> None:
    assert len(tick_label("a" + "\u0301" * 5000)) <= 8 * 16 + 1


def test_a_tooltip_is_bounded_too() -> None:
    assert len(hover_label("x" * 10_000)) == 200


@pytest.mark.parametrize(
    ("n", "pixels", "stride"),
    [(10, 600, 1), (40, 600, 1), (41, 600, 2), (128, 600, 5), (512, 600, 20), (1, 1, 1)],
)
def test_labels_fifteen_pixels_high_do_not_overlap(n: int, pixels: int, stride: int) -> None:
    assert tick_stride(n, pixels) == stride
    assert stride * pixels / n >= 15 or stride >= n


def test_ticks_are_places_and_equal_tokens_keep_their_own() -> None:
    assert ticks(["the", "cat", "the"], 300, vertical=True) == ([0, 1, 2], ["the", "cat", "the"])


def test_more_tokens_than_fit_are_labelled_evenly() -> None:
    places, texts = ticks([f"t{place}" for place in range(100)], 500, vertical=True)
    assert places == list(range(0, 100, 5))
    assert texts[1] == "t5"


def test_a_tooltip_names_place_token_and_raw_token_where_it_differs() -> None:
    assert hover_texts(["the", "[CLS]"], ["Ġthe", "[CLS]"]) == [
        "0: <b>the</b> (raw Ġthe)",
        "1: <b>[CLS]</b>",
    ]
