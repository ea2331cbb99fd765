"""DICOM files and images of more than 8 bits, as 8-bit arrays: which values become black and white.

A window in the file decides, or else the image's own percentiles. No other header field is used, and none is written.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmark.errors import LincBenchError

if TYPE_CHECKING:
    from pydicom import Dataset

DICOM_SUFFIXES = {".dcm", ".dicom"}
OTHER_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
MOST_PIXELS = 10**8  # of one image; more is a mistake or an attack
PERCENTILES = 0.5, 99.5  # become black and white where no window is given: single bright or dead pixels do not count
GREY, COLOUR = {"MONOCHROME1", "MONOCHROME2"}, {"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT"}
STORED, WINDOW, TABLE, PERCENTILE = "as stored", "by their window", "by their lookup table", "by percentiles"
PIXELS = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
OF_A_FRAME = ("PixelValueTransformationSequence", "FrameVOILUTSequence")  # where enhanced files keep what follows
GREY_SCALE = (
    *("ModalityLUTSequence", "RescaleSlope", "RescaleIntercept"),
    *("VOILUTSequence", "WindowCenter", "WindowWidth", "VOILUTFunction"),
)


class Facts(NamedTuple):
    """What was done to show an image."""

    depth: int = 8  # bits per channel, as stored
    brightness: str = STORED
    frames: int = 1
    is_dicom: bool = False


def is_dicom(path: Path) -> bool:
    """By its ending; or, of a file with no ending of an image, by its first bytes: scanners name files by numbers."""
    suffix = path.suffix.lower()
    return suffix in DICOM_SUFFIXES or (suffix not in OTHER_SUFFIXES and path.is_file() and _begins_as_dicom(path))


def _begins_as_dicom(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM"
    except OSError:
        return False


def check_size(width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise ValueError(f"{width:,} × {height:,} pixels are more than {MOST_PIXELS:,}")


def check_installed(paths: Iterable[Path]) -> None:
    if any(map(is_dicom, paths)):
        _pydicom()


@lru_cache(maxsize=1)
def _pydicom() -> Any:
    try:
        import pydicom.pixels
    except ImportError as error:
        raise LincBenchError(
            "DICOM files are read by pydicom. Install it, in the folder of this clone, with: pip install -e '.[dicom]'"
        ) from error
    warnings.filterwarnings("ignore", module="pydicom")  # of values that break the standard, in every second file
    return pydicom


def by_percentiles(values: np.ndarray) -> np.ndarray:
    """Each image by itself, since one range for a data set would be that of its most unusual image or scanner."""
    finite = values[np.isfinite(values)].astype(np.float64)
    if not finite.size:
        raise ValueError("no pixel is a finite number")
    low, high = np.percentile(finite, PERCENTILES)
    if low == high:  # a small bright spot on a flat background
        low, high = finite.min(), finite.max()
    with np.errstate(all="ignore"):
        return _as_bytes((values.astype(np.float64) - low) / ((high - low) or 1))


def _as_bytes(shares: np.ndarray) -> np.ndarray:
    """From 0 for black to 1 for white; what is not a number is black."""
    return np.round(np.clip(np.nan_to_num(shares), 0, 1) * 255).astype(np.uint8)


def read_dicom(path: Path) -> tuple[np.ndarray, Facts]:
    """Height × width, or height × width × 3 if it is in colour; of several frames the middle one."""
    header = _header(path)
    if not any(name in header for name in PIXELS):
        raise LincBenchError(f"{path} is a DICOM file without pixels: a report, or damaged. Repair or remove it.")
    for name in ("Rows", "Columns", "PhotometricInterpretation"):
        if name not in header:
            raise ValueError(f"its header has no {name}")
    check_size(int(header.Columns), int(header.Rows))
    _check_decoder(path, header)
    frames = max(1, int(header.get("NumberOfFrames") or 1))
    shown_as = str(header.PhotometricInterpretation)
    pixels = _pydicom().pixels.pixel_array(path, index=frames // 2)  # reads that frame alone, and makes YBR RGB
    if shown_as == "PALETTE COLOR" and pixels.ndim == 2:
        shown, brightness = _by_palette(pixels, header), STORED
    elif shown_as in COLOUR and pixels.shape[2:] == (3,):
        shown, brightness = _channels_as_bytes(pixels, _depth(header)), STORED
    elif shown_as in GREY and pixels.ndim == 2:
        shown, brightness = _grey(pixels, _grey_scale(header, frames // 2))
        shown = 255 - shown if shown_as == "MONOCHROME1" else shown
    else:
        raise ValueError(f"pixels of the kind {shown_as!r} and the shape {pixels.shape} are not supported")
    return shown, Facts(_depth(header), brightness, frames, is_dicom=True)


def dicom_depth(path: Path) -> int:
    return _depth(_header(path))


def _depth(header: "Dataset") -> int:
    return int(header.get("BitsStored") or header.get("BitsAllocated") or 8)


def _header(path: Path) -> "Dataset":
    pydicom = _pydicom()
    try:
        syntax = pydicom.filereader.read_file_meta_info(path).get("TransferSyntaxUID")
    except pydicom.errors.InvalidDicomError as error:
        raise ValueError("it does not begin as a DICOM file does") from error
    if syntax is None:
        raise ValueError("its header has no transfer syntax")
    if syntax.is_deflated:  # pydicom would unpack it to any size
        raise _compressed(path, syntax)
    return pydicom.dcmread(path, defer_size=2**16)  # the pixels stay on disk


def _check_decoder(path: Path, header: "Dataset") -> None:
    syntax = header.file_meta.TransferSyntaxUID
    try:
        if _pydicom().pixels.get_decoder(syntax).is_available:
            return
    except NotImplementedError:
        raise _compressed(path, syntax) from None
    raise _compressed(path, syntax, "Install decoders with: pip install 'pylibjpeg[all]'; or convert")


def _compressed(path: Path, syntax: Any, advice: str = "Convert") -> LincBenchError:
    return LincBenchError(
        f"{path} has the transfer syntax {syntax.name}, which cannot be decoded here. {advice} the file to an "
        "uncompressed one, for example with: gdcmconv --raw IN.dcm OUT.dcm"
    )


def _grey_scale(header: "Dataset", frame: int) -> "Dataset":
    """The rescale and the windows, also where an enhanced file has them for all frames or for each."""
    found = _pydicom().Dataset()
    found.file_meta = header.file_meta
    for_each = (header.get("PerFrameFunctionalGroupsSequence") or [])[frame : frame + 1]
    groups = [*(header.get("SharedFunctionalGroupsSequence") or []), *for_each]
    for part in [header, *(item for group in groups for name in OF_A_FRAME for item in group.get(name) or [])]:
        for name in GREY_SCALE:
            if part.get(name) not in (None, ""):
                found.add(part[name])
    return found


def _grey(pixels: np.ndarray, scale: "Dataset") -> tuple[np.ndarray, str]:
    """And what decided on its brightness: a window that leaves nothing to see does not."""
    processing = _pydicom().pixels.processing
    slope = _first(scale.get("RescaleSlope"), 1)
    if slope == 0 or not np.isfinite(slope):
        raise ValueError(f"its rescale slope is {slope:g}")
    scale.RescaleSlope, scale.RescaleIntercept = slope, _first(scale.get("RescaleIntercept"), 0)
    with np.errstate(all="ignore"):
        values = processing.apply_modality_lut(pixels, scale)
    function = str(scale.get("VOILUTFunction") or "LINEAR")
    center, width = (_first(scale.get(name), np.nan) for name in ("WindowCenter", "WindowWidth"))
    if np.isfinite(center) and np.isfinite(width) and width >= (1 if function == "LINEAR" else 1e-6):
        window = _pydicom().Dataset()  # its output has 8 bits, whatever the file says of its own
        window.PhotometricInterpretation, window.BitsStored, window.PixelRepresentation = "MONOCHROME2", 8, 0
        window.WindowCenter, window.WindowWidth, window.VOILUTFunction = center, width, function
        shown, brightness = _as_bytes(processing.apply_windowing(values, window) / 255), WINDOW
    elif scale.get("VOILUTSequence"):
        shown, brightness = _by_table(values, scale), TABLE
    else:
        return by_percentiles(values), PERCENTILE
    return (shown, brightness) if np.ptp(shown) else (by_percentiles(values), PERCENTILE)


def _first(value: Any, otherwise: float) -> float:
    """Of a header field that may have several values, or none."""
    values = [value] if isinstance(value, int | float | str) else list(value or [])
    return float(values[0]) if values else otherwise


def _by_table(values: np.ndarray, scale: "Dataset") -> np.ndarray:
    table = scale.VOILUTSequence[0]
    entries, first, bits = map(int, table.LUTDescriptor)
    if not 1 <= bits <= 16:
        raise ValueError(f"its lookup table has {bits} bits")
    table.LUTDescriptor = [entries, first, 16]  # with 8, pydicom would take no value above 255 to look up
    within = np.clip(np.nan_to_num(values), first, first + (entries or 2**16) - 1)
    return _as_bytes(_pydicom().pixels.apply_voi(within, scale) / (2**bits - 1))


def _by_palette(pixels: np.ndarray, header: "Dataset") -> np.ndarray:
    entries, first, bits = map(int, header.RedPaletteColorLookupTableDescriptor)
    within = np.clip(pixels.astype(np.int64), first, first + (entries or 2**16) - 1)
    return _channels_as_bytes(_pydicom().pixels.apply_color_lut(within, header)[..., :3], bits)


def _channels_as_bytes(pixels: np.ndarray, bits: int) -> np.ndarray:
    return pixels if pixels.dtype == np.uint8 else _as_bytes(pixels / (2**bits - 1))


def check_one_depth(source: str, depths: dict[str, int]) -> None:
    """Stored values and values between percentiles have brightness that means different things."""
    deep, plain = ([name for name, depth in depths.items() if (depth > 8) is is_deep] for is_deep in (True, False))
    if deep and plain:
        raise LincBenchError(
            f"{source} mixes bit depths: 8 bits in {_count(plain, 'image')} (such as {plain[0]}) and more in "
            f"{_count(deep, 'image')} (such as {deep[0]}), so their brightness cannot be compared. Convert all "
            "images to one depth."
        )


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things):,} {noun}{'s' if len(things) > 1 else ''}"


def summary(images: Sequence[Facts]) -> str:
    """In sentences, if any was not shown as it is stored."""
    dicom, deep = [one for one in images if one.is_dicom], [one for one in images if not one.is_dicom and one.depth > 8]
    sentences = []
    if dicom:
        counts = Counter(one.brightness for one in dicom)
        kinds = [f"{counts[kind]:,} {kind}" for kind in (WINDOW, TABLE, PERCENTILE, STORED) if counts[kind]]
        several = sum(one.frames > 1 for one in dicom)
        frames = f"; {several:,} with several frames, of which the middle one is used" if several else ""
        sentences.append(f"{_count(dicom, 'DICOM file')}: {', '.join(kinds)}{frames}.")
    if deep:
        low, high = PERCENTILES
        sentences.append(
            f"{_count(deep, 'image')} of more than 8 bits: each from its own {low:g}th to {high:g}th percentile."
        )
    return " ".join(sentences)
