"""The class-token-only last block: the same mathematics as timm's own, where the probe says so and nowhere else."""

from copy import deepcopy

import pytest
import timm
import torch
import torch.nn.functional as F
from torch import nn

from benchmark.networks import Backbone, last_block
from benchmark.networks.fast_layers import DepthwiseConv, Linear, PointwiseConv
from benchmark.networks.last_block import ClassTokenBlock, WholeBlock
from benchmark.networks.loading import untrained_backbone
from benchmark.networks.split_model import SplitModel, split_model

PLAIN_BLOCK, LAYER_SCALE = ("vit_tiny_patch16_224", 64), ("vit_small_patch14_dinov2", 56)
BY_CLASS_TOKEN = [PLAIN_BLOCK, LAYER_SCALE, ("vit_small_patch14_reg4_dinov2", 56), ("vit_small_patch8_224.dino", 64)]
DINOV3 = "vit_small_patch16_dinov3"  # rotary positions and LayerScale
AS_A_WHOLE = [
    ("vit_base_patch16_siglip_224", 32),  # pools by attention
    ("deit_tiny_distilled_patch16_224", 32),  # reads two tokens
    ("beit_base_patch16_224", 224),  # relative positions, which are zero at first
    ("eva02_tiny_patch14_224", 224),  # rotary positions
    pytest.param(DINOV3, 64, marks=pytest.mark.skipif(not timm.is_model(DINOV3), reason="needs timm 1.0.20")),
    ("resnet18", 64),
    ("tf_efficientnet_lite0", 64),
]


def built(name: str, size: int, dtype: torch.dtype = torch.float32) -> tuple[SplitModel, nn.Module]:
    """A split model and the plain timm model, with the same weights, none of them at a harmless initial value."""
    torch.manual_seed(0)
    split = untrained_backbone(Backbone(name, size), 5)
    with torch.no_grad():
        for parameter in split.model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    split.model.to(dtype)
    whole = deepcopy(split.model)
    for module in whole.modules():
        if isinstance(module, Linear | PointwiseConv | DepthwiseConv):
            module.__class__ = type(module).__base__
    return split, whole


def gradients(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize(("name", "size"), BY_CLASS_TOKEN)
def test_the_probe_finds_where_the_class_token_suffices(name: str, size: int) -> None:
    split = untrained_backbone(Backbone(name, size), 5)
    assert isinstance(split.block, ClassTokenBlock)
    assert "class token alone" in split.summary()


@pytest.mark.parametrize(("name", "size"), AS_A_WHOLE)
def test_the_probe_finds_where_it_does_not(name: str, size: int) -> None:
    split = untrained_backbone(Backbone(name, size), 5)
    assert isinstance(split.block, WholeBlock)
    assert "as a whole" in split.summary()


def test_the_probe_sees_that_tokens_are_averaged() -> None:
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=5, global_pool="avg").eval()
    assert isinstance(split_model(model, Backbone("vit_tiny_patch16_224", 32)).block, WholeBlock)


def test_the_probe_sees_a_norm_of_queries_that_does_nothing_yet() -> None:
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=5).eval()
    split = split_model(deepcopy(model), Backbone("vit_tiny_patch16_224", 32))
    assert isinstance(split.block, ClassTokenBlock)

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    model.blocks[-1].attn.q_norm = Scale()
    assert isinstance(split_model(model, Backbone("vit_tiny_patch16_224", 32)).block, WholeBlock)


@pytest.mark.parametrize(("name", "size"), [PLAIN_BLOCK, LAYER_SCALE])
@pytest.mark.parametrize("functional", [False, True], ids=["training", "functional"])
def test_logits_and_gradients_are_equal_in_double_precision(name: str, size: int, functional: bool) -> None:
    split, whole = built(name, size, torch.float64)
    images, labels = torch.rand(6, 3, size, size, dtype=torch.float64), torch.arange(6) % 5
    expected = whole(images)
    F.cross_entropy(expected, labels).backward()
    features = split.features(images)
    logits = split.tail_with(split.trained(), features) if functional else split.tail(features)
    F.cross_entropy(logits, labels).backward()
    assert (logits - expected).abs().max() <= 1e-10 * expected.abs().max()
    ours, theirs = gradients(split.model), gradients(whole)
    assert ours.keys() == theirs.keys()
    for parameter, gradient in theirs.items():
        assert (ours[parameter] - gradient).abs().max() <= 1e-10 * gradient.abs().max(), parameter


@pytest.mark.parametrize(("name", "size"), [PLAIN_BLOCK, LAYER_SCALE, ("tf_efficientnet_lite0", 64)])
def test_single_precision_stays_close_through_twenty_steps(name: str, size: int) -> None:
    split, whole = built(name, size)
    images, labels = torch.rand(16, 3, size, size), torch.arange(16) % 5
    with torch.no_grad():
        features = split.features(images)
    F.cross_entropy(whole(images), labels).backward()
    F.cross_entropy(split.tail(features), labels).backward()
    with torch.no_grad():
        assert (split.tail(features) - whole(images)).abs().max() <= 1e-5 * max(1, whole(images).abs().max())
    ours, theirs = gradients(split.model), gradients(whole)
    assert ours.keys() == theirs.keys()
    for parameter, gradient in theirs.items():
        assert (ours[parameter] - gradient).abs().max() <= 1e-5 * gradient.abs().max(), parameter

    trained = [parameter for parameter in whole.parameters() if parameter.requires_grad]
    optimisers = [torch.optim.Adam(parameters, 5e-4) for parameters in (split.trained().values(), trained)]
    for _ in range(20):
        for logits, optimiser in zip((split.tail(features), whole(images)), optimisers, strict=True):
            optimiser.zero_grad()
            F.cross_entropy(logits, labels).backward()
            optimiser.step()
    with torch.no_grad():
        moved = (whole(images) - built(name, size)[1](images)).abs().max()
        assert moved > 0.1
        assert (split.tail(features) - whole(images)).abs().max() < 1e-3 * max(1, whole(images).abs().max())


@pytest.mark.parametrize(("name", "size"), [PLAIN_BLOCK, LAYER_SCALE, ("tf_efficientnet_lite0", 64)])
def test_trained_weights_load_back_into_plain_timm(name: str, size: int) -> None:
    split, _ = built(name, size)
    images = torch.rand(4, 3, size, size)
    with torch.no_grad():
        features = split.features(images)
    optimiser = torch.optim.Adam(split.trained().values(), 0.01)
    F.cross_entropy(split.tail(features), torch.arange(4)).backward()
    optimiser.step()
    options = {"img_size": size} if name.startswith("vit") else {}
    plain = timm.create_model(name, num_classes=5, **options).eval()
    plain.load_state_dict(split.model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(plain(images), split.tail(features), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scratch", [1, 2**17, 2**30])
def test_images_at_a_time_change_nothing(scratch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    split, _ = built(*PLAIN_BLOCK)
    monkeypatch.setattr(last_block, "SCRATCH_BYTES", scratch)
    with torch.no_grad():
        half = split.features(torch.rand(7, 3, 64, 64)).half()
    for features in (half, half.float()):
        split.model.zero_grad()
        expected = split.tail_with(split.trained(), half.float())
        expected.sin().sum().backward()
        theirs = {name: gradient.clone() for name, gradient in gradients(split.model).items()}
        split.model.zero_grad()
        logits = split.tail(features)
        logits.sin().sum().backward()
        torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)
        for name, gradient in gradients(split.model).items():
            assert (gradient - theirs[name]).abs().max() <= 1e-5 * theirs[name].abs().max(), name
