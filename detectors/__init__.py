"""Every detector of the suite. To add one: write its file, import it here, put it into the tuple."""

from benchmark.errors import unknown_name
from detectors.aum import AUM
from detectors.base import Detector
from detectors.chance import Random
from detectors.datamaps import DataMaps
from detectors.linc import LiNC
from detectors.mean_loss import MeanLoss

DETECTORS: tuple[Detector, ...] = (LiNC(), AUM(), DataMaps(), MeanLoss(), Random())


def detector_named(name: str) -> Detector:
    for detector in DETECTORS:
        if detector.name.lower() == name.lower():
            return detector
    raise unknown_name("detector", name, [detector.name for detector in DETECTORS])


__all__ = ["DETECTORS", "Detector", "detector_named"]
