"""Labels, spans and words of tokens, against values written down by hand."""

import dataclasses

import pytest

from explorer.pieces import align, spell_out
from explorer.readable import readable
from explorer.tokens import Tokens


def test_plain_strings_become_tokens_of_one_word_each() -> None:
    tokens = Tokens.plain(["the", "cat", "the"])
    assert len(tokens) == 3
    assert tokens.texts == ("the", "cat", "the")
    assert tokens.spans == ((0, 3), (4, 7), (8, 11))
    assert tokens.words == (0, 1, 2)
    assert tokens.continues == (False, False, False)
    assert not any(tokens.special) and not any(tokens.padding)


def test_tokens_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Tokens.plain(["a"]).texts = ("b",)  # type: ignore[misc]


def test_fields_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        dataclasses.replace(Tokens.plain(["a", "b"]), texts=("a",))


def test_no_tokens_at_all_are_allowed() -> None:
    assert len(Tokens.plain([])) == 0


def test_selecting_keeps_every_field_and_which_pieces_continue_a_word() -> None:
    tokens = dataclasses.replace(
        Tokens.plain(["un", "affa", "ble"]), words=(0, 0, 0), continues=(False, True, True)
    )
    chosen = tokens.select([2, 0])
    assert chosen.texts == ("ble", "un")
    assert chosen.ids == (2, 0)
    assert chosen.continues == (True, False)


def test_tokens_can_be_joined() -> None:
    pads = Tokens.added([0, 0], ["[PAD]", "[PAD]"], padding=True)
    both = Tokens.plain(["a"]) + pads
    assert both.texts == ("a", "[PAD]", "[PAD]")
    assert both.padding == (False, True, True)
    assert both.special == (False, True, True)
    assert both.sources == (0, None, None)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("cat", "cat"),
        ("", "∅"),
        (" ", "·"),
        ("   ", "···"),
        ("a b", "a b"),
        ("a  b", "a··b"),
        ("  def", "··def"),
        ("the ", "the·"),
        ("\n", "⏎"),
        ("\n\n", "⏎⏎"),
        ("\t", "⇥"),
        ("\r\n", "U+000D⏎"),
        ("\x00", "U+0000"),
        ("\x1b[31m", "U+001B[31m"),
        ("\u202e", "U+202E"),
        ("abc\u202edef", "abcU+202Edef"),
        ("\u2066", "U+2066"),
        ("\u00a0", "U+00A0"),
        ("\u3000", "U+3000"),
        ("\u200b", "U+200B"),
        ("\ufeff", "U+FEFF"),
        ("\u200d", "U+200D"),
        ("\u3164", "U+3164"),
        ("\ud83d", "U+D83D"),
        ("\ufffe", "U+FFFE"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("\ufe0f", "U+FE0F"),
        ("שלום", "שלום"),
        ("مرحبا", "مرحبا"),
        ("<b>x</b>", "<b>x</b>"),
        ("a<br>b", "a<br>b"),
        ("&lt;", "&lt;"),
        ("$119", "$119"),
        ("2024-01", "2024-01"),
        ("1E1", "1E1"),
        ("</script><img src=x onerror=alert(1)>", "</script><img src=x onerror=alert(1)>"),
    ],
)
def test_everything_in_a_label_is_visible(text: str, label: str) -> None:
    assert readable(text) == label


def test_word_piece_marks_are_joints() -> None:
    assert spell_out(["un", "##affa", "##ble", "cat"]) == (
        "unaffable\x1fcat",
        [(0, 2), (2, 6), (6, 9), (10, 13)],
    )


def test_two_number_signs_alone_are_text() -> None:
    assert spell_out(["##", "##"]) == ("##\x1f##", [(0, 2), (3, 5)])


def test_byte_level_marks_are_spaces_and_bytes() -> None:
    assert spell_out(["the", "Ġcat", "Ċ"]) == ("the cat\n", [(0, 3), (3, 7), (7, 8)])
    assert spell_out(["ðŁĺ", "Ģ", "Ġhi"]) == ("😀 hi", [(0, 1), (0, 1), (1, 4)])


def test_sentence_piece_marks_are_spaces_and_bytes() -> None:
    assert spell_out(["▁the", "▁cat", "<0x0A>"]) == (" the cat\n", [(0, 4), (4, 8), (8, 9)])
    raws = ["▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    assert spell_out(raws) == (" 😀", [(0, 1), (1, 2), (1, 2), (1, 2), (1, 2)])


def test_joints_before_and_ends_after_are_marks_too() -> None:
    assert spell_out(["to@@", "day", "now"]) == ("today\x1fnow", [(0, 2), (2, 5), (6, 9)])
    assert spell_out(["to", "day</w>", "now</w>"]) == ("today\x1fnow", [(0, 2), (2, 5), (6, 9)])


def test_half_a_character_is_shown_as_missing() -> None:
    assert spell_out(["ðŁĺ", "Ġa"]) == ("��� a", [(0, 3), (3, 5)])


def test_bytes_one_by_one_are_known_by_their_text() -> None:
    raws = [chr(byte) for byte in "né".encode()]
    assert spell_out(raws, "né") == ("né", [(0, 1), (1, 2), (1, 2)])
    assert spell_out(raws, "né is cut") == ("né", [(0, 1), (1, 2), (1, 2)])


def test_spelt_text_is_found_in_the_text_it_came_from() -> None:
    spelt, spans = spell_out(["un", "##affa", "##ble", "naive"])
    assert align(spelt, spans, "  Unaffable  Naïve") == [(2, 4), (4, 8), (8, 11), (13, 18)]


def test_letters_one_by_one_keep_their_spaces() -> None:
    spelt, spans = spell_out(["a", " ", "b"])
    assert align(spelt, spans, "a b") == [(0, 1), (1, 2), (2, 3)]


def test_a_piece_that_is_not_in_the_text_has_no_span() -> None:
    assert align("the dog", [(0, 3), (4, 7)], "the cat") == [(0, 3), None]
