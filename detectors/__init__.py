"""Every detector of the suite. To add one: write its file, import it here, put it into the tuple."""

from benchmark.errors import unknown_name
from detectors.aum import AUM
from detectors.base import Detector
from detectors.chance import Random
from detectors.cnlcu import CNLCUS
from detectors.confident_learning import ConfidentLearning
from detectors.data_iq import DataIQ
from detectors.datamaps import DataMaps
from detectors.el2n import EL2N
from detectors.forgetting import Forgetting
from detectors.grand import GraNd
from detectors.linc import LiNC
from detectors.loss_mixture import LossMixture
from detectors.mean_loss import LastLoss, MeanLoss
from detectors.nearest_neighbours import Neighbours
from detectors.post_hoc_trust import PostHocTrust
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

LINE_UPS: dict[str, tuple[Detector, ...]] = {"original": DETECTORS, "hcat": HCAT}


def detector_named(name: str) -> Detector:
    for detector in DETECTORS:
        if detector.name.lower() == name.lower():
            return detector
    raise unknown_name("detector", name, [detector.name for detector in DETECTORS])


__all__ = ["DETECTORS", "HCAT", "LINE_UPS", "Detector", "detector_named"]
