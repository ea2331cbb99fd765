"""One image file as an 8-bit array, and what was done to show it."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmark.data import medical_files
from benchmark.data.medical_files import DICOM_SUFFIXES, OTHER_SUFFIXES, Facts
from benchmark.errors import LincBenchError

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = DICOM_SUFFIXES | OTHER_SUFFIXES
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP")  # whatever the name says: other decoders may start programs
PHOTOMETRIC_INTERPRETATION, WHITE_IS_ZERO = 262, 0  # a tag of TIFF, which Pillow heeds for 8 bits only
LONGEST = 300  # characters of what a decoder says


def decode(path: Path) -> np.ndarray:
    """Height × width × 3."""
    return read_image(path)[0]


def read_image(path: Path) -> tuple[np.ndarray, Facts]:
    from PIL import Image  # not needed to list or describe data sets

    try:
        if medical_files.is_dicom(path):
            pixels, facts = medical_files.read_dicom(path)
        else:
            with Image.open(path, formats=FORMATS) as image:
                medical_files.check_size(image.width, image.height)
                if _depth(image) == 8:
                    return np.asarray(image.convert("RGB")), Facts()
                pixels, facts = _between_percentiles(image)
        return np.asarray(Image.fromarray(pixels).convert("RGB")), facts
    except LincBenchError:
        raise
    except Exception as error:  # for a damaged file its decoder may raise anything
        why = "".join(letter if letter.isprintable() else " " for letter in str(error))[:LONGEST]
        raise LincBenchError(f"{path} cannot be read as an image ({why}). Repair or remove it.") from error


def _depth(image: "Image.Image") -> int:
    """8, or more if there is one channel of more bits; Pillow reduces several channels to 8."""
    return 16 if image.mode.startswith(("I", "F")) else 8


def _between_percentiles(image: "Image.Image") -> tuple[np.ndarray, Facts]:
    shown = medical_files.by_percentiles(np.asarray(image))
    is_inverted = getattr(image, "tag_v2", {}).get(PHOTOMETRIC_INTERPRETATION) == WHITE_IS_ZERO
    return 255 - shown if is_inverted else shown, Facts(_depth(image), medical_files.PERCENTILE)


def stored_depth(path: Path) -> int | None:
    """Bits per channel, from the header alone; None if it cannot be read."""
    from PIL import Image

    try:
        if medical_files.is_dicom(path):
            return medical_files.dicom_depth(path)
        with Image.open(path, formats=FORMATS) as image:
            return _depth(image)
    except Exception:  # what is wrong is said when the image is needed
        return None
