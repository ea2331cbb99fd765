"""Every detector of the suite. To add one: write its file, import it here, put it into the tuple."""

from typing import get_args

from benchmark.errors import LincBenchError, unknown_name
from detectors.aum import AUM
from detectors.aum_threshold import AUMThreshold
from detectors.base import Detector
from detectors.chance import Random
from detectors.cnlcu import CNLCUS
from detectors.combined import Combined
from detectors.confident_learning import ConfidentLearning
from detectors.cores import CORES
from detectors.ctrl import CTRL
from detectors.data_iq import DataIQ
from detectors.data_oob import DataOOB
from detectors.datamaps import DataMaps
from detectors.el2n import EL2N
from detectors.fine import FINE
from detectors.forgetting import Forgetting
from detectors.grand import GraNd
from detectors.linc import LiNC
from detectors.loss_mixture import LossMixture
from detectors.map_d import MAPD
from detectors.margins import GivenMargin, GivenProbability, Reading
from detectors.mean_loss import LastLoss, MeanLoss
from detectors.nearest_neighbours import Neighbours
from detectors.post_hoc_trust import PostHocTrust
from detectors.relation_graph import RelationGraph
from detectors.second_split import SecondSplitForgetting
from detectors.selfclean import SelfClean
from detectors.simifeat import SimiFeatR, SimiFeatV
from detectors.tracin import TracIn
from detectors.vog import VoG

# As their authors describe them.
DETECTORS: tuple[Detector, ...] = (
    LiNC(),
    AUM(),
    DataMaps(),
    DataIQ(),
    EL2N(),
    GraNd(),
    Forgetting(),
    CNLCUS(),
    VoG(),
    PostHocTrust(),
    ConfidentLearning(),
    LossMixture(),
    MeanLoss(),
    LastLoss(),
    Neighbours(),
    SimiFeatV(),
    SimiFeatR(),
    SelfClean(),
    FINE(),
    TracIn(),
    RelationGraph(),
    CTRL(),
    CORES(),
    GivenMargin(),
    GivenProbability(),
    DataOOB(),
    Combined(),
    AUMThreshold(),
    SecondSplitForgetting(),
    MAPD(),
    Random(),
)

# As the benchmark H-CAT (Seedat et al., ICLR 2024) computes those that it does differently.
HCAT: tuple[Detector, ...] = (
    LiNC(),
    AUM(skip_first_epoch=False, until="end"),
    DataMaps(moment="end of epoch"),
    DataIQ(measure="confidence"),
    EL2N(epoch=None, squared=True),
    GraNd(epoch=None),
    Forgetting(never_learned="zero", moment="end of epoch"),
    CNLCUS(bound=False),
    VoG(at_epochs=(1, 3, 5), output="probability", per_class=False, high_is_clean=True, channels="separate"),
)

# The plain readings of logits, beside each other.
READINGS: tuple[Detector, ...] = (
    LiNC(),
    *(kind(reading) for kind in (GivenMargin, GivenProbability) for reading in get_args(Reading)),
)

LINE_UPS: dict[str, tuple[Detector, ...]] = {"original": DETECTORS, "hcat": HCAT, "margins": READINGS}


def detector_named(name: str) -> Detector:
    for detector in DETECTORS:
        if detector.name.lower() == name.lower():
            return detector
    if name.endswith(".py"):
        raise LincBenchError(f"{name} is a file; name the detector's class too, as in {name}:MyDetector.")
    raise unknown_name("detector", name, [detector.name for detector in DETECTORS])


__all__ = ["DETECTORS", "HCAT", "LINE_UPS", "READINGS", "Detector", "detector_named"]
