"""Label noise: one short file or class per kind, flip files, and the answer key."""

from benchmark.errors import unknown_name
from benchmark.noise.annotators import Annotators
from benchmark.noise.base import NoiseKind, Samples, WrongLabels
from benchmark.noise.boundary import Boundary
from benchmark.noise.by_class import Asymmetric, Pair, Symmetric, SymmetricInclusive
from benchmark.noise.flips import FromFile
from benchmark.noise.given import Given
from benchmark.noise.instance import Instance
from benchmark.noise.open_set import OpenSet
from benchmark.noise.settings import AnswerKey, NoiseSettings

NOISE_KINDS: tuple[type[NoiseKind], ...] = (
    Symmetric,
    SymmetricInclusive,
    Pair,
    Asymmetric,
    Instance,
    Boundary,
    Annotators,
    OpenSet,
    Given,
    FromFile,
)


def noise_named(text: str) -> NoiseKind:
    """From a name, or from `name:option`."""
    name, _, option = text.partition(":")
    for kind in NOISE_KINDS:
        if kind.name == name:
            return kind.with_option(option)
    raise unknown_name("noise kind", name, [kind.name for kind in NOISE_KINDS])
