"""Faster forms of torch's layers: the same outputs and gradients, and torch's own where they cannot be used."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import nn

from benchmark.networks import Backbone
from benchmark.networks import fast_layers as layers
from benchmark.networks.fast_layers import HAS_ONEDNN, DepthwiseConv, Linear, PointwiseConv, fast_layers, make_fast
from benchmark.networks.loading import untrained_backbone

needs_onednn = pytest.mark.skipif(not HAS_ONEDNN, reason="the faster forms are for x86")
LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], type[nn.Module]]] = {
    "linear": (lambda: nn.Linear(7, 5), (6, 7), Linear),
    "linear on tokens, without bias": (lambda: nn.Linear(7, 5, bias=False), (2, 3, 7), Linear),
    "pointwise": (lambda: nn.Conv2d(8, 6, 1), (4, 8, 3, 2), PointwiseConv),
    "depthwise": (lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), (4, 8, 2, 2), DepthwiseConv),
    "depthwise, one pixel": (lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), (4, 8, 1, 1), DepthwiseConv),
    "depthwise, larger": (lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), (4, 8, 5, 4), DepthwiseConv),
}


def outputs_and_gradients(layer: nn.Module, inputs: torch.Tensor) -> list[torch.Tensor]:
    leaf = inputs.clone().requires_grad_()
    layer.zero_grad()
    outputs = layer(leaf)
    outputs.sin().sum().backward()
    assert leaf.grad is not None
    return [outputs.detach(), leaf.grad, *(p.grad.clone() for p in layer.parameters() if p.grad is not None)]


@needs_onednn
@pytest.mark.parametrize("name", LAYERS)
def test_outputs_and_gradients_are_those_of_torch(name: str) -> None:
    torch.manual_seed(0)
    make, shape, form = LAYERS[name]
    theirs, inputs = make(), torch.randn(shape)
    ours = deepcopy(theirs)
    make_fast(ours)
    assert type(ours) is form
    expected = outputs_and_gradients(theirs, inputs)
    with fast_layers():
        assert type(ours(inputs.clone().requires_grad_()).grad_fn) is not type(theirs(inputs).grad_fn)
        found = outputs_and_gradients(ours, inputs)
    assert len(found) == len(expected) == 2 + len(list(ours.parameters()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_elsewhere_they_are_torchs_own(name: str) -> None:
    torch.manual_seed(0)
    make, shape, _ = LAYERS[name]
    theirs, inputs = make().double(), torch.randn(shape).double()
    ours = deepcopy(theirs)
    make_fast(ours)
    expected = outputs_and_gradients(theirs, inputs)
    with fast_layers():  # not in double precision
        found = outputs_and_gradients(ours, inputs)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    theirs, ours, inputs = theirs.float(), ours.float(), inputs.float()
    gradient = torch.func.vmap(torch.func.grad(lambda x: ours(x[None]).sin().sum()))(inputs)  # batched over samples
    torch.testing.assert_close(gradient, outputs_and_gradients(theirs, inputs)[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(8, 8, 3, padding=1, groups=8),  # with a bias
        nn.Conv2d(8, 8, 3, padding=0, groups=8, bias=False),
        nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False, stride=2),
        nn.Conv2d(8, 16, 3, padding=1, groups=8, bias=False),
        nn.Conv2d(8, 8, 1, groups=2),
        nn.modules.linear.NonDynamicallyQuantizableLinear(3, 3),
    ],
)
def test_other_layers_stay(layer: nn.Module) -> None:
    before = type(layer)
    make_fast(layer)
    assert type(layer) is before


@needs_onednn
def test_frozen_weights_get_no_gradient() -> None:
    layer = nn.Linear(3, 2).requires_grad_(False)
    make_fast(layer)
    with fast_layers():
        outputs_and_gradients(layer, torch.randn(4, 3))
    assert layer.weight.grad is None
    assert layer.bias.grad is None


@pytest.mark.parametrize(("name", "size"), [("tf_efficientnet_lite0", 64), ("vit_tiny_patch16_224", 64)])
def test_training_and_features_stay_the_same(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    split = untrained_backbone(Backbone(name, size), 5)
    images, products = torch.rand(3, 3, size, size), []

    def made() -> list[torch.Tensor]:
        split.model.zero_grad()
        with torch.no_grad():
            features = split.features(images)
        logits = split.tail(features)
        logits.sin().sum().backward()
        return [features, logits.detach(), *(p.grad.clone() for p in split.trained().values() if p.grad is not None)]

    product = layers._product
    monkeypatch.setattr(layers, "_product", lambda *args: products.append(args) or product(*args))
    fast = made()
    assert bool(products) == HAS_ONEDNN
    monkeypatch.setattr(layers, "HAS_ONEDNN", False)
    count = len(products)
    for one, other in zip(fast, made(), strict=True):
        assert (one - other).abs().max() <= 1e-5 * other.abs().max()
    assert len(products) == count
