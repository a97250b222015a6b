"""Trains "Copier", the small decoder that comes with the app, and writes its model folder.

    python -m scripts.train_copier [--steps 1500] [--out explorer/copier]

Three layers of four heads, in Llama's form, so that transformers loads it as any other model.
It learns from four kinds of text, none of it anybody's private words:

- random tokens in which a segment comes again after a gap of its own length in each text: only a
  previous-token head and an induction head together can continue it (Olsson et al. 2022);
- the same with random English words;
- small made-up stories from a list of words, in which names and phrases come again;
- the help texts of Python's own documentation (PSF licence), for English as it is written.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from pydoc_data.topics import topics

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from scripts.browser import ROOT

SEED = 7
LENGTH = 96
FIRST_LENGTH = 48
BATCH = 48
VOCABULARY = 2048
RATE = 4e-3
START = "<|start|>"

NAMES = """Anna Ben Clara David Ella Felix Grace Hugo Ida Jonas Kate Leo Mary Noah Olive Paul Rosa
Sam Tina Victor Will Zoe John Emma""".split()
ANIMALS = """cat dog fox bird horse mouse rabbit bear wolf lion tiger sheep goat duck frog turtle
snake monkey elephant cow pig hen fish owl""".split()
THINGS = """ball book hat key letter apple cup lamp stone box flower ring coat map chair bread boat
clock coin picture rope shoe spoon blanket""".split()
ADJECTIVES = """red blue green old young big small quick slow happy sad quiet loud brown black white
grey tired clever brave lazy kind golden dark""".split()
PLACES = """house garden forest river street market school kitchen hill bridge lake field barn
tower shop beach mountain village room station""".split()
TRANSITIVE = """saw found liked chased heard followed watched helped met called lost kept wanted
carried hid painted""".split()
MOVES = "went ran walked came hurried returned wandered travelled".split()
WORDS = (
    NAMES + ANIMALS + THINGS + ADJECTIVES + PLACES + TRANSITIVE + MOVES
    + "the a and then but because it was to in of with so when very now".split()
)  # fmt: skip


def story(rng: random.Random) -> str:
    """A few sentences about few people and things, so that most words come again."""
    names, animals = rng.sample(NAMES, 2), rng.sample(ANIMALS, 2)
    things, places = rng.sample(THINGS, 2), rng.sample(PLACES, 2)
    adjectives = rng.sample(ADJECTIVES, 3)
    beast = [f"the {adjectives[n]} {animals[n]}" for n in range(2)]
    thing = [f"the {adjectives[2]} {things[0]}", f"the {things[1]}"]
    sentences = [
        f"{names[0]} gave {thing[0]} to {names[1]}.",
        f"{names[1]} gave {thing[1]} to {names[0]}.",
        f"When {names[0]} and {names[1]} {rng.choice(MOVES)} to the {places[0]}, "
        f"{names[0]} gave {thing[0]} to {names[1]}.",
        f"{beast[0].capitalize()} {rng.choice(TRANSITIVE)} {beast[1]}.",
        f"{beast[1].capitalize()} {rng.choice(TRANSITIVE)} {beast[0]}.",
        f"{names[0]} {rng.choice(TRANSITIVE)} {beast[0]} in the {places[0]}.",
        f"{names[1]} {rng.choice(MOVES)} to the {places[1]} with {thing[0]}.",
        f"Then {beast[0]} {rng.choice(MOVES)} to the {places[1]}.",
        f"{beast[0].capitalize()} was {rng.choice(ADJECTIVES)} because it {rng.choice(TRANSITIVE)} "
        f"{thing[1]}.",
        f"The {things[0]} was in the {places[0]}.",
    ]
    return " ".join(rng.choice(sentences) for _ in range(rng.randint(5, 12)))


def words_again(rng: random.Random) -> str:
    """Random words, some of which come again in their order."""
    period = rng.randint(4, 24)
    segment = [rng.choice(WORDS) for _ in range(period)]
    return " ".join((segment * 40)[: rng.randint(2 * period, 100)])


def tokens_again(rng: random.Random, pool: list[int], length: int) -> tuple[list[int], list[bool]]:
    """Random ids with a period of their own for each text: position alone can't solve it.

    With them, True where the next id can be known.
    """
    period = rng.randint(length // 4, length // 2)
    segment = [rng.choice(pool) for _ in range(period)]
    return (segment * (length // period + 1))[:length], [at >= period for at in range(length)]


def trained_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE: any text can be read, known words are one token."""
    rng = random.Random(SEED)
    own = [story(rng) for _ in range(3000)] + [words_again(rng) for _ in range(3000)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[START],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*own, *topics.values()], trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        bos_token=START,
        eos_token=START,
        pad_token=START,
        model_max_length=4 * LENGTH,
    )


def repeats(rng: random.Random, pool: list[int]) -> tuple[Tensor, Tensor]:
    """Ids (BATCH, FIRST_LENGTH), and True where the next can be known: a first, plain lesson."""
    rows = [tokens_again(rng, pool, FIRST_LENGTH) for _ in range(BATCH)]
    return torch.tensor([ids for ids, _ in rows]), torch.tensor([known for _, known in rows])


def mixture(
    rng: random.Random, tokenizer: PreTrainedTokenizerFast, help_ids: list[int], pool: list[int]
) -> tuple[Tensor, Tensor]:
    """The same of all four kinds of text, (BATCH, LENGTH)."""
    rows, counts = [], []
    for _ in range(BATCH):
        kind = rng.random()
        known = [True] * LENGTH
        if kind < 0.3:
            ids, known = tokens_again(rng, pool, LENGTH)
        elif kind < 0.85:
            text = " ".join((words_again if kind < 0.5 else story)(rng) for _ in range(3))
            ids = (tokenizer(text)["input_ids"] * 3)[:LENGTH]
        else:
            start = rng.randrange(len(help_ids) - LENGTH)
            ids = help_ids[start : start + LENGTH]
        rows.append(ids)
        counts.append(known)
    return torch.tensor(rows), torch.tensor(counts)


def accuracy_on_repeats(model: LlamaForCausalLM, pool: list[int]) -> float:
    """The share of right next tokens in the repeated part of texts it has never seen."""
    rng = random.Random(SEED + 2)
    rows = [[rng.choice(pool) for _ in range(20)] * 2 for _ in range(32)]
    ids = torch.tensor(rows)
    with torch.no_grad():
        guesses = model(input_ids=ids).logits.argmax(-1)
    return float((guesses[:, 21:-1] == ids[:, 22:]).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first-steps", type=int, default=1500, help="at most, on repeats alone")
    parser.add_argument("--steps", type=int, default=1500, help="on all kinds of text")
    parser.add_argument("--out", type=Path, default=ROOT / "explorer" / "copier")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    tokenizer = trained_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=4 * LENGTH,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=128**-0.5,  # unit variance after each projection
        rope_parameters={"rope_type": "default", "rope_theta": 100.0},  # short texts only
    )
    model = LlamaForCausalLM(config)
    # As wide as what the heads add: otherwise these drown the tokens, and no head can match them.
    torch.nn.init.normal_(model.model.embed_tokens.weight)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.0)
    rng = random.Random(SEED + 1)
    help_ids = tokenizer("\n".join(topics.values()))["input_ids"]
    ids_in_order = rng.sample(range(1, len(tokenizer)), len(tokenizer) - 1)
    size, second = 64, 0  # the second lesson begins when all ids are copied
    begun = time.time()
    for step in range(options.first_steps + options.steps):
        done = second and step - second
        rate = RATE * min(1.0, (step + 1) / 50) * (1 - done / (options.steps + 1))
        for group in optimizer.param_groups:
            group["lr"] = rate
        pool = ids_in_order[:size]
        ids, known = mixture(rng, tokenizer, help_ids, pool) if second else repeats(rng, pool)
        states = model.model(input_ids=ids).last_hidden_state[:, :-1]
        counted = known[:, :-1]
        loss = F.cross_entropy(model.lm_head(states[counted]), ids[:, 1:][counted])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if second and step - second >= options.steps:
            break
        if step % 50 == 49:
            model.train(False)
            found = accuracy_on_repeats(model, pool)
            model.train()
            print(
                f"step {step + 1}: {len(pool)} ids, loss {loss.item():.3f}, repeats {found:.3f}, "
                f"{time.time() - begun:.0f} s",
                flush=True,
            )
            if not second and found > 0.7:
                second = step + 1 if size == len(ids_in_order) else 0
                size = min(2 * size, len(ids_in_order))
    model.train(False).half().save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)
    parameters = sum(each.numel() for each in model.parameters())
    print(f"{parameters:,} parameters in {options.out.name}")


if __name__ == "__main__":
    main()
