"""A file's bytes as text, in many encodings, and samples that every Python has."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile

import pytest

from explorer.long_texts import ENCODINGS, MOST_BYTES, SAMPLES, read_text
from explorer.models import LoadedModel, TextError, count_tokens

FRENCH = "Les élèves français ont été très étonnés : où était passé le garçon ? "
JAPANESE = (
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
    "何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。"
)
RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастливая по-своему. "
GREEK = "Το γοργόν και χάριν έχει, λέει η παροιμία. "
POLISH = "Zażółć gęślą jaźń. Litwo, ojczyzno moja! Ty jesteś jak zdrowie; ile cię trzeba cenić. "
KOREAN = "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. "
CHINESE = "人之初,性本善。性相近,習相遠。苟不教,性乃遷。"
QUOTES = "“quoted” — déjà vu… it’s fine. "
SOURCE = "# Copyright © 2026 Jörg Müller\nimport math\n\nprint(math.pi)\n" * 9


@pytest.mark.parametrize(
    ("text", "codec", "key"),
    [
        ("hello there\n", "ascii", "utf_8"),
        (JAPANESE + "😀", "utf-8", "utf_8"),
        (FRENCH, "utf-8-sig", "utf_8"),
        (FRENCH, "utf-16", "utf_16"),
        (FRENCH, "utf-16-le", "utf_16"),
        (FRENCH, "utf-16-be", "utf_16"),
        (FRENCH, "utf-32", "utf_32"),
        (FRENCH, "latin-1", "cp1252"),
        (FRENCH * 30, "latin-1", "cp1252"),
        ("déjà vu", "latin-1", "cp1252"),
        ("café", "latin-1", "cp1252"),
        (SOURCE, "latin-1", "cp1252"),
        (QUOTES, "cp1252", "cp1252"),
        (JAPANESE, "shift_jis", "cp932"),
        (JAPANESE[:20], "shift_jis", "cp932"),
        (JAPANESE, "euc_jp", "euc_jp"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8_r", "koi8_r"),
        (GREEK, "cp1253", "cp1253"),
        (POLISH, "cp1250", "cp1250"),
        (KOREAN, "euc_kr", "cp949"),
        (CHINESE, "big5", "big5"),
        (CHINESE.replace("遠", "远"), "gb18030", "gb18030"),
        ("吾輩は猫である。名前はまだ無い。" * 99, "shift_jis", "cp932"),
        ("こんにちは", "shift_jis", "cp932"),
        ("안녕하세요", "cp949", "cp949"),
        ("我是一只猫。还没有名字。", "gb18030", "gb18030"),
        ("我是一隻貓。還沒有名字。", "big5", "big5"),
    ],
)
def test_a_file_reads_as_it_was_written(text: str, codec: str, key: str) -> None:
    found = read_text(text.encode(codec), "notes.txt")
    assert found.text == text
    assert found.encoding == key
    assert found.notes == ()
    assert found.encoding_title == ENCODINGS[key]


@pytest.mark.parametrize(
    "text",
    [
        "Bär",
        "Größe über",
        "Öl",
        "été à la plage",
        "El niño comió piñas. ¿Qué?",
        "10 € für 5 £",
        "Å, ä och ö",
        "l’été «chaud»",
        "€5",
    ],
)
def test_a_few_western_words_are_not_taken_for_another_alphabet(text: str) -> None:
    assert read_text(text.encode("cp1252"), "a.txt").text == text


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Café crème déjà vu", "mac_roman"),  # "CafŽ" in Windows-1252
        ("naïve élève à l’école", "mac_roman"),
        ("Zażółć gęślą jaźń", "cp1250"),
        ("Привет мир, как дела сегодня", "cp1251"),
        ("Καλημέρα κόσμε", "cp1253"),
        ("Türkiye'de yaşayan çocuklar ışık söndürdü", "cp1254"),
        ("日本語の文章です。", "cp932"),
        ("안녕하세요 세계", "cp949"),
    ],
)
def test_a_few_words_of_others_are_not_taken_for_western_ones(text: str, codec: str) -> None:
    assert read_text(text.encode(codec), "a.txt").text == text


def test_an_encoding_can_be_given_where_the_one_found_is_wrong() -> None:
    hebrew = "דג סקרן שט בים מאוכזב ולפתע מצא לו חברה"
    found = read_text(hebrew.encode("cp1255"), "a.txt", encoding="cp1255")
    assert (found.text, found.encoding) == (hebrew, "cp1255")
    for key in ENCODINGS:
        assert read_text("plain".encode(key), "a.txt", encoding=key).text == "plain"
    with pytest.raises(ValueError, match='encoding: got "klingon"; there are utf_8'):
        read_text(b"a", "a.txt", encoding="klingon")


def test_line_ends_become_one_kind() -> None:
    assert read_text(b"a\r\nb\rc\n\r\nd", "a.txt").text == "a\nb\nc\n\nd"


def test_a_file_whose_end_was_cut_off_is_still_utf_8() -> None:
    found = read_text(("日本語" * 30).encode()[:-1], "a.txt")
    assert found.text == ("日本語" * 30)[:-1] + "\ufffd"
    assert found.encoding == "utf_8"
    assert found.notes == ("1 place could not be read as UTF-8 and shows �.",)


@pytest.mark.parametrize(
    ("text", "codec"), [(JAPANESE, "cp932"), ("我是一只猫。还没有名字。", "gb18030")]
)
def test_the_end_may_be_cut_off_in_other_encodings_too(text: str, codec: str) -> None:
    found = read_text((text * 9).encode(codec)[:-1], "a.txt")
    assert found.text == (text * 9)[:-1] + "\ufffd"
    assert found.encoding == codec
    assert "1 place could not be read" in found.notes[0]


def test_half_a_character_is_replaced_and_told() -> None:
    found = read_text(b"abc \xed\xa0\xbd def", "a.txt")
    assert found.text == "abc \ufffd def"
    assert "lone surrogate" in found.notes[0]
    joined = read_text("😀".encode("utf-16", "surrogatepass"), "a.txt")
    assert joined.text == "😀"


def test_a_nul_is_shown_and_told() -> None:
    found = read_text(b"hello\0 world, this is a text of some length", "a.txt")
    assert found.text.startswith("hello\ufffd world")
    assert found.notes == ("The file has NUL characters, which are shown as �.",)


def archive() -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w") as file:
        file.writestr("a.txt", "hello")
    return kept.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "a.bin is empty"),
        (b" \n\t ", "a.bin is empty"),
        (b"\xef\xbb\xbf", "a.bin is empty"),
        (b"\0" * 50, "a.bin is empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "a.bin is a PNG image, not text"),
        (archive(), "a.bin is a zip archive"),
        (b"%PDF-1.7\nsome text", "a.bin is a PDF, not text"),
        (bytes((37 * n * n + 11 * n) % 256 for n in range(4000)), "a.bin is not a text file"),
        (b"text\x01\x02\x03\x04\x05" * 20, "a.bin is not a text file"),
        (b"a" * (MOST_BYTES + 1), "a.bin has 5.0 MB, and at most 5 MB"),
    ],
)
def test_what_is_no_text_is_refused_with_a_sentence(data: bytes, reason: str) -> None:
    with pytest.raises(TextError, match=reason):
        read_text(data, "a.bin")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_as_long_as_it_says_and_always_the_same(name: str, minilm: LoadedModel) -> None:
    sample = SAMPLES[name]
    # Versions of Python differ a little.
    assert count_tokens(minilm, sample.text) == pytest.approx(sample.tokens, rel=0.15)
    assert sample.text == sample.text
    assert sample.title and sample.about


def test_samples_go_from_two_to_over_sixteen_thousand_tokens() -> None:
    lengths = [sample.tokens for sample in SAMPLES.values()]
    assert lengths == sorted(lengths)
    assert lengths[0] < 2_500
    assert sum(length > 16_000 for length in lengths) >= 2
    assert any("Prose" in sample.about for sample in SAMPLES.values())


def test_nothing_is_read_before_it_is_asked_for() -> None:
    code = (
        "import sys, explorer.long_texts as t; "
        "print([m in sys.modules for m in ('pydoc_data.topics', 'statistics')]); "
        "t.SAMPLES['types'].text; print('pydoc_data.topics' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].startswith("[False")
    assert done.stdout.splitlines()[1] == "True"
