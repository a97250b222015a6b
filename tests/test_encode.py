"""Text to ids and tokens, on the bundled MiniLM and on small tokenizers made here."""

import dataclasses
import threading
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.models.ctrl.tokenization_ctrl import CTRLTokenizer

from explorer.encoding import encode_tokens, read_whole
from explorer.models import (
    LoadedModel,
    TextError,
    TooLongError,
    count_tokens,
    encode,
    encode_batch,
)

SENTENCES = ["the cat sat on the mat", "the dog and the cat", "a sat mat on a mat"] * 4


def loaded_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> LoadedModel:
    return LoadedModel("tiny", "Tiny", model.eval(), tokenizer, torch.device("cpu"), torch.float32)


def byte_level_backend(specials: list[str], *, trim_offsets: bool = True) -> Tokenizer:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(SENTENCES, trainer)
    return backend


@pytest.fixture(scope="module")
def gpt2() -> LoadedModel:
    """Byte-level, no pad token, no template."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level_backend(["<|endoftext|>"]), eos_token="<|endoftext|>"
    )
    config = GPT2Config(vocab_size=400, n_embd=8, n_layer=1, n_head=2, n_positions=32)
    return loaded_model(GPT2LMHeadModel(config), tokenizer)


@pytest.fixture(scope="module")
def llama() -> LoadedModel:
    """SentencePiece-like with byte fallback, a start token, neither pad nor end token."""
    letters = [*"▁abcdehmnost", "th", "▁th", "▁the", "▁c", "at", "▁cat"]
    vocab = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    merges = [("t", "h"), ("▁", "th"), ("▁th", "e"), ("▁", "c"), ("a", "t"), ("▁c", "at")]
    bpe = models.BPE(
        vocab={piece: at for at, piece in enumerate(vocab)},
        merges=merges,
        unk_token="<unk>",
        byte_fallback=True,
        fuse_unk=True,
    )
    backend = Tokenizer(bpe)
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    backend.add_special_tokens(["<unk>", "<s>"])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", unk_token="<unk>", padding_side="left"
    )
    config = LlamaConfig(
        vocab_size=len(vocab),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
    )
    return loaded_model(LlamaForCausalLM(config), tokenizer)


@pytest.fixture(scope="module")
def t5() -> LoadedModel:
    """Unigram, whose vocabulary holds the specials as ordinary pieces as well."""
    backend = Tokenizer(models.Unigram())
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=60,
        special_tokens=["<pad>", "</s>", "<unk>"],
        unk_token="<unk>",
        initial_alphabet=list("</>s日本fi"),
        show_progress=False,
    )
    backend.train_from_iterator(SENTENCES, trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    config = T5Config(vocab_size=60, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    return loaded_model(T5ForConditionalGeneration(config), tokenizer)


@pytest.fixture(scope="module")
def roberta() -> LoadedModel:
    backend = byte_level_backend(["<s>", "<pad>", "</s>"])
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
    )
    config = RobertaConfig(
        vocab_size=400,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=34,
        pad_token_id=1,
        type_vocab_size=1,
    )
    return loaded_model(RobertaModel(config), tokenizer)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A tokenizer written in Python, without offsets: BPE with @@ at joints."""
    folder = tmp_path_factory.mktemp("ctrl")
    pieces = ["<unk>", "th@@", "e", "cat", "to@@", "day", "t@@", "h@@", "a@@", "c@@", "o@@", "d@@"]
    vocab = {piece: at for at, piece in enumerate([*pieces, "y", "t"])}
    merges = ["#version: 0.2", "t h", "c a", "ca t</w>", "t o", "d a", "da y</w>", ""]
    (folder / "vocab.json").write_text(str(vocab).replace("'", '"'), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(merges), encoding="utf-8")
    vocab_file, merges_file = str(folder / "vocab.json"), str(folder / "merges.txt")
    tokenizer = CTRLTokenizer(vocab_file=vocab_file, merges_file=merges_file, unk_token="<unk>")
    config = BertConfig(
        vocab_size=40,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=6,
    )
    return loaded_model(BertModel(config), tokenizer)


@pytest.fixture(params=["minilm", "gpt2", "llama", "t5", "roberta", "slow"])
def any_model(request: pytest.FixtureRequest) -> Iterator[LoadedModel]:
    yield request.getfixturevalue(request.param)


# Labels


def test_word_pieces_are_shown_without_marks_in_the_letters_of_the_text(
    minilm: LoadedModel,
) -> None:
    tokens = encode(minilm, "Unaffable naïve 🦜").tokens
    assert tokens.raws == ("[CLS]", "una", "##ffa", "##ble", "naive", "[UNK]", "[SEP]")
    assert tokens.texts == ("[CLS]", "Una", "ffa", "ble", "naïve", "🦜", "[SEP]")
    assert tokens.spans == (None, (0, 3), (3, 6), (6, 9), (10, 15), (16, 17), None)
    assert tokens.words == (None, 0, 0, 0, 1, 2, None)
    assert tokens.continues == (False, False, True, True, False, False, False)
    assert tokens.special == (True, False, False, False, False, False, True)
    assert tokens.sources == (None, 0, 0, 0, 0, 0, None)


def test_the_bytes_of_one_character_are_counted(gpt2: LoadedModel) -> None:
    tokens = encode(gpt2, "😀 hi").tokens
    assert tokens.texts == ("😀 (1/4)", "😀 (2/4)", "😀 (3/4)", "😀 (4/4)", "·", "h", "i")
    assert tokens.raws == ("ð", "Ł", "ĺ", "Ģ", "Ġ", "h", "i")
    assert tokens.spans == ((0, 1), (0, 1), (0, 1), (0, 1), (1, 2), (2, 3), (3, 4))
    assert tokens.continues == (False, True, True, True, False, True, True)


def test_byte_level_text_is_read_from_the_text_in_every_script(gpt2: LoadedModel) -> None:
    assert encode(gpt2, "naïve").tokens.texts == ("n", "a", "ï (1/2)", "ï (2/2)", "v", "e")
    assert encode(gpt2, "日").tokens.texts == ("日 (1/3)", "日 (2/3)", "日 (3/3)")
    assert encode(gpt2, "Пр").tokens.texts == ("П (1/2)", "П (2/2)", "р (1/2)", "р (2/2)")
    family = encode(gpt2, "👩‍👧").tokens.texts
    assert family[4:7] == ("U+200D (1/3)", "U+200D (2/3)", "U+200D (3/3)")


def test_a_token_with_parts_of_two_characters_shows_both() -> None:
    backend = Tokenizer(
        models.BPE(vocab={"æ": 0, "Ĺ¥æľ": 1, "Ĺ": 2, "¥": 3, "ľ": 4, "Ĺ¥": 5, "¬": 6,
                          "Ĺ¥æ": 7}, merges=[("Ĺ", "¥"), ("Ĺ¥", "æ"), ("Ĺ¥æ", "ľ")])
    )  # fmt: skip
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    config = GPT2Config(vocab_size=8, n_embd=8, n_layer=1, n_head=2)
    tokens = encode(loaded_model(GPT2LMHeadModel(config), tokenizer), "日本").tokens
    assert tokens.raws == ("æ", "Ĺ¥æľ", "¬")
    assert tokens.texts == ("日 (1/2)", "日 (2/2) 本 (1/2)", "本 (2/2)")
    assert tokens.spans == ((0, 1), (0, 2), (1, 2))


def test_the_space_between_words_is_dropped_and_every_other_space_shown(gpt2: LoadedModel) -> None:
    tokens = encode(gpt2, "the  cat sat\n\tmat ").tokens
    assert tokens.raws == ("the", "Ġ", "Ġcat", "Ġsat", "Ċ", "ĉ", "mat", "Ġ")
    assert tokens.texts == ("the", "·", "cat", "sat", "⏎", "⇥", "mat", "·")
    assert tokens.spans[:4] == ((0, 3), (3, 4), (5, 8), (9, 12))


def test_sentence_piece_text_shows_spaces_and_bytes(llama: LoadedModel) -> None:
    tokens = encode(llama, "the cat\n 😀").tokens
    assert tokens.raws[:4] == ("<s>", "▁the", "▁cat", "<0x0A>")
    assert tokens.texts[:5] == ("<s>", "the", "cat", "⏎", "·")
    assert tokens.texts[5:] == ("😀 (1/4)", "😀 (2/4)", "😀 (3/4)", "😀 (4/4)")
    assert tokens.words == (None, 0, 1, None, None, 2, 2, 2, 2)
    assert tokens.continues == (False,) * 6 + (True,) * 3


def test_a_space_that_the_tokenizer_put_there_covers_no_text(t5: LoadedModel) -> None:
    tokens = encode(t5, "日本").tokens
    assert tokens.raws == ("▁", "日", "本", "</s>")
    assert tokens.texts == ("·", "日", "本", "</s>")
    assert tokens.spans == ((0, 0), (0, 1), (1, 2), None)


def test_pieces_of_a_character_that_normalising_took_apart_are_counted(t5: LoadedModel) -> None:
    assert encode(t5, "ﬁ").tokens.texts == ("·", "ﬁ (1/2)", "ﬁ (2/2)", "</s>")


def test_markup_stays_as_typed(any_model: LoadedModel) -> None:
    for text in ("<b>x</b>", "a<br>b", "&lt;", "$1 _x_", ":red[x]"):
        if any_model.tokenizer is not None and not any_model.tokenizer.is_fast:
            continue  # joins letters that it does not know
        tokens = encode(any_model, text).tokens
        typed = "".join(
            label for label, source in zip(tokens.texts, tokens.sources, strict=True) if source == 0
        )
        assert typed.replace("·", "") == text.replace(" ", "")


def test_right_to_left_text_keeps_its_order_and_overrides_are_codes(gpt2: LoadedModel) -> None:
    tokens = encode(gpt2, "ab\u202ecd").tokens
    assert "U+202E (1/3)" in tokens.texts
    tokens = encode(gpt2, "אב").tokens
    assert tokens.texts == ("א (1/2)", "א (2/2)", "ב (1/2)", "ב (2/2)")


def test_equal_words_stay_separate_tokens(gpt2: LoadedModel) -> None:
    tokens = encode(gpt2, "the cat the").tokens
    assert tokens.texts == ("the", "cat", "the")
    assert tokens.words == (0, 1, 2)


def test_one_token_is_enough(gpt2: LoadedModel) -> None:
    encoded = encode(gpt2, "the")
    assert encoded.tokens.texts == ("the",)
    assert encoded.inputs["input_ids"].shape == (1, 1)


def test_a_tokenizer_without_offsets_is_read_by_its_marks(slow: LoadedModel) -> None:
    tokens = encode(slow, "the  today").tokens
    assert tokens.raws == ("th@@", "e", "to@@", "day")
    assert tokens.texts == ("th", "e", "to", "day")
    assert tokens.spans == ((0, 2), (2, 3), (5, 7), (7, 10))
    assert tokens.continues == (False, True, False, True)


# Pairs and type ids


def test_a_pair_is_one_input_with_two_sources(minilm: LoadedModel) -> None:
    encoded = encode(minilm, "the cat", "a dog")
    assert encoded.tokens.texts == ("[CLS]", "the", "cat", "[SEP]", "a", "dog", "[SEP]")
    assert encoded.tokens.sources == (None, 0, 0, None, 1, 1, None)
    assert encoded.tokens.spans[4:6] == ((0, 1), (2, 5))
    assert encoded.inputs["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1]]


def test_a_blank_second_text_is_no_pair(minilm: LoadedModel) -> None:
    assert encode(minilm, "the cat", "  ").tokens == encode(minilm, "the cat").tokens


def test_models_that_read_pairs_are_known(
    minilm: LoadedModel, gpt2: LoadedModel, llama: LoadedModel, roberta: LoadedModel
) -> None:
    assert minilm.takes_pairs and roberta.takes_pairs
    assert not gpt2.takes_pairs and not llama.takes_pairs


def test_a_second_text_is_left_out_with_a_word_where_no_pairs_are_read(gpt2: LoadedModel) -> None:
    encoded = encode(gpt2, "the cat", "a dog")
    assert encoded.tokens.texts == ("the", "cat")
    assert any("second" in note for note in encoded.notes)
    assert count_tokens(gpt2, "the cat", "a dog") == 2


def test_type_ids_are_given_only_to_models_that_use_them(
    minilm: LoadedModel, gpt2: LoadedModel, roberta: LoadedModel
) -> None:
    assert "token_type_ids" in encode(minilm, "cat").inputs
    assert "token_type_ids" not in encode(gpt2, "cat").inputs
    assert "token_type_ids" not in encode(roberta, "cat").inputs


# Typed special tokens


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("minilm", "[SEP]"),
        ("minilm", "[PAD]"),
        ("minilm", "[MASK]"),
        ("gpt2", "<|endoftext|>"),
        ("llama", "<s>"),
        ("t5", "</s>"),
        ("t5", "<pad>"),
        ("roberta", "<s>"),
    ],
)
def test_a_typed_special_token_is_plain_text_unless_asked(
    name: str, typed: str, request: pytest.FixtureRequest
) -> None:
    model: LoadedModel = request.getfixturevalue(name)
    assert model.tokenizer is not None
    special_id = model.tokenizer.convert_tokens_to_ids(typed)

    plain = encode(model, f"the {typed} cat")
    inside = [at for at, source in enumerate(plain.tokens.sources) if source == 0]
    assert special_id not in [plain.tokens.ids[at] for at in inside]
    assert "".join(plain.tokens.texts[at] for at in inside).replace("·", "") == f"the{typed}cat"
    assert not any(plain.tokens.special[at] for at in inside)
    assert any(typed in note and "plain text" in note for note in plain.notes)

    special = encode(model, f"the {typed} cat", specials_as_text=False)
    places = [at for at, raw in enumerate(special.tokens.raws) if raw == typed]
    middle = [place for place in places if special.tokens.sources[place] == 0]
    assert len(middle) == 1
    assert special.tokens.special[middle[0]] and special.tokens.texts[middle[0]] == typed
    assert any(typed in note and "special" in note for note in special.notes)


def test_unknown_text_is_not_special(minilm: LoadedModel) -> None:
    tokens = encode(minilm, "🦜").tokens
    assert tokens.raws[1] == "[UNK]"
    assert not tokens.special[1]


def test_a_start_token_typed_after_the_models_own_is_left_out_and_told(llama: LoadedModel) -> None:
    encoded = encode(llama, "<s>the cat", specials_as_text=False)
    assert encoded.tokens.raws.count("<s>") == 1
    assert encoded.inputs["input_ids"].shape == (1, len(encoded.tokens))
    assert any("twice" in note for note in encoded.notes)


def test_a_template_that_adds_the_start_token_twice_is_told() -> None:
    backend = byte_level_backend(["<s>"])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> <s> $A", special_tokens=[("<s>", 0)]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")
    config = GPT2Config(vocab_size=400, n_embd=8, n_layer=1, n_head=2)
    encoded = encode(loaded_model(GPT2LMHeadModel(config), tokenizer), "the cat")
    assert encoded.tokens.texts == ("<s>", "the", "cat")
    assert any("twice" in note for note in encoded.notes)


def test_threads_that_share_a_tokenizer_do_not_mix_their_settings(minilm: LoadedModel) -> None:
    start = threading.Barrier(4)

    def ids(as_text: bool) -> set[tuple[int, ...]]:
        start.wait()
        return {
            encode(minilm, "the [SEP] cat", specials_as_text=as_text).tokens.ids for _ in range(50)
        }

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ids, [True, False, True, False]))
    assert all(len(each) == 1 for each in found)
    assert found[0] == found[2] and found[1] == found[3] and found[0] != found[1]


# Odd, empty and long texts


@pytest.mark.parametrize("text", ["", " ", "\n\t  \n"])
def test_no_text_is_asked_for(any_model: LoadedModel, text: str) -> None:
    with pytest.raises(TextError, match="Please type some text"):
        encode(any_model, text)
    assert count_tokens(any_model, text) == 0


def test_text_in_which_the_tokenizer_finds_nothing_is_refused(minilm: LoadedModel) -> None:
    with pytest.raises(TextError, match="finds nothing"):
        encode(minilm, "\x00\x01")


def test_a_lone_surrogate_is_replaced_and_told(any_model: LoadedModel) -> None:
    encoded = encode(any_model, "the \ud83d cat")
    assert any("surrogate" in note for note in encoded.notes)
    assert encoded.tokens.ids == encode(any_model, "the \ufffd cat").tokens.ids


def test_two_halves_of_a_character_are_joined(gpt2: LoadedModel) -> None:
    encoded = encode(gpt2, "\ud83d\ude00")
    assert encoded.tokens.ids == encode(gpt2, "😀").tokens.ids
    assert encoded.notes == ()


def test_a_text_that_is_too_long_says_both_numbers_and_offers_to_cut(minilm: LoadedModel) -> None:
    text = "word " * 600
    with pytest.raises(TooLongError, match=r"602.*512.*90.*cut") as caught:
        encode(minilm, text)
    assert (caught.value.length, caught.value.limit) == (602, 512)
    encoded = encode(minilm, text, truncate=True)
    assert len(encoded.tokens) == 512
    assert encoded.tokens.raws[-2:] == ("word", "[SEP]")
    assert any("90 tokens" in note for note in encoded.notes)


def test_a_pair_is_cut_where_it_is_longest(minilm: LoadedModel) -> None:
    tokens = encode(minilm, "word " * 600, "a dog", truncate=True).tokens
    assert len(tokens) == 512
    assert tokens.texts[-4:] == ("[SEP]", "a", "dog", "[SEP]")


def test_cutting_works_without_offsets_too(slow: LoadedModel) -> None:
    with pytest.raises(TooLongError) as caught:
        encode(slow, "the the the the")
    assert (caught.value.length, caught.value.limit) == (8, 6)
    encoded = encode(slow, "the the the the", truncate=True)
    assert encoded.tokens.texts == ("th", "e", "th", "e", "th", "e")


def test_a_model_without_position_limit_reads_any_length(t5: LoadedModel) -> None:
    assert t5.max_tokens is None
    assert len(encode(t5, "the cat " * 500).tokens) > 1000


def test_an_endless_paste_is_refused_at_once(minilm: LoadedModel) -> None:
    with pytest.raises(TextError, match="characters"):
        encode(minilm, "a" * 1_000_001)


def test_a_model_that_reads_no_text_says_so(minilm: LoadedModel) -> None:
    with pytest.raises(TextError, match="does not read text"):
        encode(dataclasses.replace(minilm, tokenizer=None), "the cat")


def test_the_count_is_the_length_of_what_would_be_encoded(any_model: LoadedModel) -> None:
    text = "the cat <s> [SEP]"
    if any_model.max_tokens == 6:
        text = "the cat"
    assert count_tokens(any_model, text) == len(encode(any_model, text).tokens)


@pytest.mark.parametrize("name", ["minilm", "gpt2", "llama", "t5", "roberta", "slow"])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(text="👩‍👩‍👧 \ud83d日本語 \u202e שלום  e\u0301 <s>", as_text=True)
@example(text="\u0301\u200d\ufe0f", as_text=True)
@example(text="▁Ġ## @@", as_text=True)
@given(text=st.text(st.characters(codec=None), max_size=40), as_text=st.booleans())
def test_any_text_is_encoded_with_labels_and_spans_or_refused_in_words(
    name: str, request: pytest.FixtureRequest, text: str, as_text: bool
) -> None:
    model: LoadedModel = request.getfixturevalue(name)
    try:
        encoded = encode(model, text, specials_as_text=as_text, truncate=True)
    except TextError as error:
        assert str(error)
        return
    tokens = encoded.tokens
    assert encoded.inputs["input_ids"].tolist() == [list(tokens.ids)]
    assert model.max_tokens is None or len(tokens) <= model.max_tokens
    for label, span, word, source in zip(
        tokens.texts, tokens.spans, tokens.words, tokens.sources, strict=True
    ):
        assert label
        assert not {unicodedata.category(letter) for letter in label} & {"Cc", "Cs", "Zl", "Zp"}
        assert not set(label) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
        assert word is None or word >= 0
        assert source in (None, 0)
        if span is not None:
            assert 0 <= span[0] <= span[1] <= len(text)


# Batches


def test_a_batch_is_padded_on_the_chosen_side_and_padding_is_marked(minilm: LoadedModel) -> None:
    batch = encode_batch(minilm, ["the cat sat", "cat"])
    assert batch.inputs["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert batch.inputs["token_type_ids"].shape == (2, 5)
    assert batch.tokens[1].texts == ("[CLS]", "cat", "[SEP]", "[PAD]", "[PAD]")
    assert batch.tokens[1].padding == (False, False, False, True, True)
    left = encode_batch(minilm, ["the cat sat", "cat"], padding_side="left")
    assert left.inputs["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]
    assert left.tokens[1].padding == (True, True, False, False, False)
    for batch_row, tokens in zip(left.inputs["input_ids"].tolist(), left.tokens, strict=True):
        assert tuple(batch_row) == tokens.ids


def test_a_batch_needs_no_padding_token(gpt2: LoadedModel, llama: LoadedModel) -> None:
    right = encode_batch(gpt2, ["the cat", "cat the cat sat"])
    assert right.tokens[0].raws[-1] == "<|endoftext|>"
    assert right.inputs["attention_mask"][0].sum() == 2
    left = encode_batch(llama, ["the cat", "the cat the"])
    assert left.inputs["attention_mask"].tolist() == [[0, 1, 1, 1], [1, 1, 1, 1]]
    assert left.inputs["input_ids"][0, 0] == 0
    assert left.tokens[0].padding == (True, False, False, False)
    for model, batch in ((gpt2, right), (llama, left)):
        with torch.no_grad():
            assert torch.isfinite(model.model(**batch.inputs).logits).all()


def test_a_wrong_padding_side_and_an_empty_batch_are_refused(minilm: LoadedModel) -> None:
    with pytest.raises(ValueError, match="padding_side"):
        encode_batch(minilm, ["a"], padding_side="middle")
    with pytest.raises(TextError):
        encode_batch(minilm, [])


# Encoder-decoders


def test_a_decoder_starts_with_its_start_token_and_the_target_follows(t5: LoadedModel) -> None:
    alone = encode(t5, "the cat")
    assert alone.target_tokens is not None
    assert alone.target_tokens.texts == ("<pad>",)
    assert alone.target_tokens.special == (True,)
    encoded = encode(t5, "the cat", target="the mat")
    assert encoded.target_tokens is not None
    assert encoded.target_tokens.raws[0] == "<pad>"
    assert "</s>" not in encoded.target_tokens.raws
    assert encoded.inputs["decoder_input_ids"].tolist() == [list(encoded.target_tokens.ids)]
    with torch.no_grad():
        logits = t5.model(**encoded.inputs).logits
    assert logits.shape[1] == len(encoded.target_tokens)


def test_a_model_without_decoder_has_no_target(minilm: LoadedModel) -> None:
    encoded = encode(minilm, "the cat", target="the mat")
    assert encoded.target_tokens is None
    assert "decoder_input_ids" not in encoded.inputs


def test_a_batch_for_an_encoder_decoder_has_start_tokens(t5: LoadedModel) -> None:
    batch = encode_batch(t5, ["the cat", "cat"])
    assert batch.inputs["decoder_input_ids"].tolist() == [[0], [0]]
    assert batch.target_tokens is not None and len(batch.target_tokens) == 2


def test_a_text_of_any_length_is_read_whole(minilm: LoadedModel) -> None:
    tokens = read_whole(minilm, "the cat sat on [SEP] " * 200)
    assert len(tokens) == count_tokens(minilm, "the cat sat on [SEP] " * 200) > 512
    assert [at for at, special in enumerate(tokens.special) if special] == [0, len(tokens) - 1]
    with pytest.raises(TextError, match="Please type some text"):
        read_whole(minilm, " ")


def test_tokens_read_before_are_the_same_input(minilm: LoadedModel) -> None:
    expected = encode(minilm, "the cat sat")
    found = encode_tokens(minilm, read_whole(minilm, "the cat sat"))
    assert found.tokens == expected.tokens
    assert found.inputs.keys() == expected.inputs.keys()
    assert all(torch.equal(found.inputs[name], given) for name, given in expected.inputs.items())
