"""The small model against one written with torch's own attention, rotary by hand, its start."""

from __future__ import annotations

import cmath
import math

import pytest
import torch
import torch.nn.functional as F

from explorer.small_model import ModelShape, SmallModel, rotary
from explorer.tasks import AssociativeRecall, RepeatedSegment, symbols

pytestmark = pytest.mark.usefixtures("one_thread")


def shape(**sizes: object) -> ModelShape:
    usual = {"symbols": 12, "answers": 12, "length": 8, "d_model": 8, "n_heads": 2, "d_k": 6}
    return ModelShape(**{**usual, **sizes})  # type: ignore[arg-type]


def reference(model: SmallModel, ids: torch.Tensor) -> torch.Tensor:
    """The same model in torch's own functions, from its weights by name."""
    kept, sizes = dict(model.state_dict()), model.shape
    for name, parameter in model.named_parameters():
        kept[name] = parameter  # with its gradient
    heads, d_k = sizes.n_heads, sizes.d_k
    x = sum(F.embedding(ids[..., field], kept["embedding.weight"]) for field in range(ids.shape[2]))
    if sizes.positions == "learned":
        x = x + kept["places.weight"][: ids.shape[1]]
    scale = d_k**-0.5 if sizes.scale is None else sizes.scale
    for layer in range(sizes.n_layers):
        weight, bias = kept[f"norms.{layer}.weight"], kept[f"norms.{layer}.bias"]
        normed = F.layer_norm(x, (sizes.d_model,), weight, bias)
        query, key, value = (
            (normed @ kept[f"layers.{layer}.W_{name}.weight"].T)
            .reshape(*ids.shape[:2], heads, -1)
            .transpose(1, 2)
            for name in "QKV"
        )
        if sizes.positions == "rotary":
            query, key = by_complex_numbers(query), by_complex_numbers(key)
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)
        joined = out.transpose(1, 2).reshape(*ids.shape[:2], -1)
        x = x + joined @ kept[f"layers.{layer}.W_O.weight"].T
    x = F.layer_norm(x, (sizes.d_model,), kept["last_norm.weight"], kept["last_norm.bias"])
    return x @ kept["answer.weight"].T


def by_complex_numbers(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions as multiplication by e^(i·angle), Su et al. 2021, section 3.2."""
    half = x.shape[-1] // 2
    pairs = torch.complex(x[..., :half], x[..., half:])
    place = torch.arange(x.shape[-2], dtype=x.dtype)[:, None]
    angle = place / 10_000 ** (torch.arange(half, dtype=x.dtype) / half)
    turned = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], -1)


@pytest.mark.parametrize("scale", [None, 1.0, 1 / 6, -0.4])
@pytest.mark.parametrize("positions", ["rotary", "learned"])
@pytest.mark.parametrize("task", [RepeatedSegment(8, 12), AssociativeRecall(4, 3, 6)])
def test_outputs_and_gradients_are_those_of_torchs_own_attention(
    scale: float | None, positions: str, task: RepeatedSegment | AssociativeRecall
) -> None:
    sizes = shape(
        symbols=symbols(task),
        answers=task.answers,
        length=task.length,
        scale=scale,
        positions=positions,
        n_layers=3,
    )
    model = SmallModel(sizes, seed=3).double()
    batch = task.draw(5, torch.Generator().manual_seed(0))

    def gradients(logits: torch.Tensor) -> list[torch.Tensor]:
        loss = F.cross_entropy(logits[batch.counts], batch.targets[batch.counts])
        return list(torch.autograd.grad(loss, list(model.parameters())))

    ours, expected = model(batch.ids)[0], reference(model, batch.ids)
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-12)
    for own, other in zip(gradients(ours), gradients(expected), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ["layers.0.W_Q.weight", "layers.1.W_K.weight"])
def test_a_gradient_is_the_slope_of_the_loss(name: str) -> None:
    task = RepeatedSegment(8, 12)
    model = SmallModel(shape(), seed=1).double()
    batch = task.draw(4, torch.Generator().manual_seed(0))
    weight = dict(model.named_parameters())[name]

    def loss() -> torch.Tensor:
        logits = model(batch.ids)[0]
        return F.cross_entropy(logits[batch.counts], batch.targets[batch.counts])

    loss().backward()
    step = 1e-6
    for at in ((0, 0), (3, 5), (7, 2)):
        with torch.no_grad():
            weight[at] += step
            above = loss()
            weight[at] -= 2 * step
            below = loss()
            weight[at] += step
        slope = float((above - below) / (2 * step))
        assert float(weight.grad[at]) == pytest.approx(slope, rel=1e-5, abs=1e-10)


def test_rotary_turns_each_pair_by_its_place() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]]).repeat(3, 1)  # the pairs are (1, 3) and (2, 4)
    turned = rotary(x)
    for place in range(3):
        for pair, speed in ((0, 1.0), (1, 0.01)):  # 10000^(−0/4) and 10000^(−2/4)
            wanted = complex(x[0, pair], x[0, pair + 2]) * cmath.exp(1j * place * speed)
            assert float(turned[place, pair]) == pytest.approx(wanted.real, abs=1e-6)
            assert float(turned[place, pair + 2]) == pytest.approx(wanted.imag, abs=1e-6)


def test_rotary_products_depend_on_the_distance_alone() -> None:
    query, key = torch.randn(2, 1, 8, dtype=torch.float64)
    products = rotary(query.expand(9, 8)) @ rotary(key.expand(9, 8)).T
    for distance in range(-3, 4):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))


def test_the_records_are_the_models_own_attention() -> None:
    model = SmallModel(shape(scale=1.0, n_layers=2), seed=0)
    ids = RepeatedSegment(8, 12).draw(1, torch.Generator().manual_seed(0)).ids
    steps = model(ids)[1]
    records = model.records(ids[0])
    for record, step in zip(records, steps, strict=True):
        assert record.scale == 1.0
        torch.testing.assert_close(record.weights(), step.weights[0], atol=1e-6, rtol=1e-5)
        assert (record.weights().triu(1) == 0).all()


@pytest.mark.parametrize("d_k", [16, 256])
@pytest.mark.parametrize(("kind", "share"), [("unit", 1.0), ("torch", 1 / 9)])
def test_scores_start_as_wide_as_the_theory_says(d_k: int, kind: str, share: float) -> None:
    task = RepeatedSegment(32)
    sizes = ModelShape(32, 32, 32, d_k=d_k, n_layers=1, initialisation=kind, scale=1.0)  # type: ignore[arg-type]
    batch = task.draw(16, torch.Generator().manual_seed(0))
    dots = [SmallModel(sizes, seed)(batch.ids)[1][0].dots.detach() for seed in range(4)]
    # Each seed's projections are one draw, so the spread between them is some per cent.
    variance = float(torch.stack([each.var() for each in dots]).mean())
    assert variance == pytest.approx(share * d_k, rel=0.12)


def test_small_first_weights_are_two_hundredths_wide() -> None:
    model = SmallModel(ModelShape(32, 32, 32, initialisation="small"), seed=0)
    for name, weight in model.named_parameters():
        if "norm" not in name:
            assert float(weight.detach().std()) == pytest.approx(0.02, rel=0.05), name


def test_the_seed_alone_decides_the_weights_and_the_scale_does_not() -> None:
    torch.manual_seed(1)
    first = SmallModel(shape(), seed=5)
    torch.manual_seed(2)
    second = SmallModel(shape(scale=1.0), seed=5)
    other = SmallModel(shape(), seed=6)
    for one, same, different in zip(
        first.parameters(), second.parameters(), other.parameters(), strict=True
    ):
        assert one.equal(same)
        if one.ndim > 1:
            assert not one.equal(different)


def test_the_scale_is_one_over_root_d_k_unless_given() -> None:
    assert shape(d_k=16).used_scale == 1 / math.sqrt(16)
    assert shape(d_k=16, scale=1.0).used_scale == 1.0


@pytest.mark.parametrize(
    ("sizes", "argument"),
    [
        ({"n_layers": 0}, "n_layers"),
        ({"n_layers": 5}, "n_layers"),
        ({"n_heads": 3}, "n_heads"),
        ({"d_k": 3}, "d_k"),
        ({"d_k": 0}, "d_k"),
        ({"scale": math.nan}, "scale"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_by_name(sizes: dict[str, object], argument: str) -> None:
    with pytest.raises(ValueError, match=f"^{argument}: got"):
        shape(**sizes)
