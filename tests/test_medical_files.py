"""DICOM files and images of more than 8 bits: which grey value a stored value becomes, and a sentence for bad files."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.dataset import FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import (
    MPEG2MPML,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRLittleEndian,
    JPEGLosslessSV1,
    RLELossless,
    SecondaryCaptureImageStorage,
    generate_uid,
)

from benchmark.audit import scoring
from benchmark.audit.audited_data import AuditedData, read_audited_data
from benchmark.audit.run_audit import audit
from benchmark.audit.settings import AuditSettings
from benchmark.data import medical_files
from benchmark.data.datasets import Dataset, load_dataset
from benchmark.data.decoding import decode, read_image
from benchmark.data.medical_files import PERCENTILE, STORED, TABLE, WINDOW
from benchmark.errors import LincBenchError
from benchmark.networks import Backbone

RAMP = np.arange(256, dtype=np.uint16).reshape(16, 16) * 16  # 0 to 4080
Write = Callable[..., Path]


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")  # the files are wrong on purpose


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_dicom(pixels: np.ndarray | None, name: str = "image.dcm", **fields: Any) -> Path:
        syntax = fields.pop("syntax", ExplicitVRLittleEndian)
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
        meta.MediaStorageSOPInstanceUID, meta.TransferSyntaxUID = generate_uid(), syntax
        file = pydicom.Dataset()
        file.file_meta = meta
        file.SOPClassUID, file.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
        if pixels is not None:
            bits = 8 * pixels.dtype.itemsize
            samples = pixels.shape[-1] if pixels.shape[-1] == 3 else 1
            frames = pixels.ndim == 3 and samples == 1
            file.Rows, file.Columns = pixels.shape[1:3] if frames else pixels.shape[:2]
            file.SamplesPerPixel, file.BitsAllocated, file.BitsStored, file.HighBit = samples, bits, bits, bits - 1
            file.PixelRepresentation = int(pixels.dtype.kind == "i")
            file.PhotometricInterpretation = "MONOCHROME2" if samples == 1 else "RGB"
            if samples == 3:
                file.PlanarConfiguration = 0
            if frames:
                file.NumberOfFrames = len(pixels)
            file.PixelData = pixels.tobytes()
            file["PixelData"].VR = "OB" if bits == 8 else "OW"
        for key, value in fields.items():
            setattr(file, key, value)
        if syntax.is_encapsulated:
            file["PixelData"].is_undefined_length = True
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        file.save_as(tmp_path / name, enforce_file_format=True)
        return tmp_path / name

    return write_dicom


def grey(path: Path) -> np.ndarray:
    pixels = decode(path)
    assert pixels.dtype == np.uint8
    assert pixels.shape[2:] == (3,)
    assert (pixels == pixels[..., :1]).all()
    return pixels[..., 0]


def linear(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.round(np.clip((values.astype(float) - low) / (high - low), 0, 1) * 255)


def sequence(**fields: Any) -> list[pydicom.Dataset]:
    item = pydicom.Dataset()
    for key, value in fields.items():
        setattr(item, key, value)
    return [item]


def lookup(entries: list[int], first: int, bits: int) -> list[pydicom.Dataset]:
    item = pydicom.Dataset()
    item.add_new("LUTDescriptor", "US", [len(entries), first, bits])
    item.add_new("LUTData", "US", entries)
    return [item]


def load_by_path(path: Path) -> Dataset:
    return load_dataset(str(path))


def test_a_window_decides_and_of_several_the_first(write: Write) -> None:
    path = write(RAMP, WindowCenter=[1000, 3000], WindowWidth=[400, 10])
    assert np.allclose(grey(path), linear(RAMP, 1000 - 0.5 - 399 / 2, 1000 - 0.5 + 399 / 2), atol=1)
    assert read_image(path)[1] == (16, WINDOW, 1, True)
    assert grey(path)[RAMP <= 800].max() == 0
    assert grey(path)[RAMP >= 1200].min() == 255


def test_stored_bits_of_the_header_do_not_move_a_window(write: Write) -> None:
    window = {"WindowCenter": 1000, "WindowWidth": 400}
    few = write(RAMP, "few.dcm", BitsStored=12, HighBit=11, **window)
    assert (grey(few) == grey(write(RAMP, "all.dcm", **window))).all()


def test_a_sigmoid_and_an_exact_window(write: Write) -> None:
    window = {"WindowCenter": 2000, "WindowWidth": 1000}
    exact = write(RAMP, "exact.dcm", VOILUTFunction="LINEAR_EXACT", **window)
    assert np.allclose(grey(exact), linear(RAMP, 1500, 2500), atol=1)
    sigmoid = write(RAMP, "sigmoid.dcm", VOILUTFunction="SIGMOID", **window)
    assert np.allclose(grey(sigmoid), 255 / (1 + np.exp(-4 * (RAMP - 2000.0) / 1000)), atol=1)


def test_values_are_rescaled_before_a_window(write: Write) -> None:
    """Hounsfield units: a slope and an intercept, also negative, of signed values."""
    stored = (RAMP.astype(np.int32) - 2048).astype(np.int16)
    path = write(stored, RescaleSlope=0.5, RescaleIntercept=-100, WindowCenter=40, WindowWidth=401)
    units = stored * 0.5 - 100
    assert np.allclose(grey(path), linear(units, 39.5 - 200, 39.5 + 200), atol=1)
    falling = write(stored, "falling.dcm", RescaleSlope=-0.5, RescaleIntercept=0)
    assert grey(falling)[0, 0] == 255
    assert grey(falling)[-1, -1] == 0


def test_without_a_window_the_percentiles_decide(write: Write) -> None:
    values = RAMP.copy()
    values[0, 0] = 60000  # a hot pixel does not make the rest black
    path = write(values)
    assert (grey(path) == linear(values, *np.percentile(values, (0.5, 99.5)))).all()
    assert grey(path)[8, 8] > 100
    assert read_image(path)[1].brightness == PERCENTILE


@pytest.mark.parametrize(
    "window",
    [
        {"WindowCenter": 100, "WindowWidth": 0},
        {"WindowCenter": 100, "WindowWidth": -5},
        {"WindowCenter": 100},
        {"WindowCenter": None, "WindowWidth": None},
        {"WindowCenter": -9000, "WindowWidth": 10},  # all white
        {"WindowCenter": "1e400", "WindowWidth": 1},
    ],
)
def test_a_window_that_shows_nothing_is_not_used(write: Write, window: dict[str, Any]) -> None:
    path = write(RAMP, **window)
    assert (grey(path) == linear(RAMP, *np.percentile(RAMP, (0.5, 99.5)))).all()
    assert read_image(path)[1].brightness == PERCENTILE


def test_a_lookup_table_decides_where_there_is_no_window(write: Write) -> None:
    table = lookup([min(255, i // 4) for i in range(1000)], 1000, 8)  # more entries than 8 bits can count
    path = write(RAMP, VOILUTSequence=table)
    assert (grey(path) == np.minimum(np.clip(RAMP.astype(int) - 1000, 0, 999) // 4, 255)).all()
    assert read_image(path)[1].brightness == TABLE
    modality = write(
        RAMP, "m.dcm", ModalityLUTSequence=lookup([0] * 16 + [5] + [0] * 9, 16, 16), WindowCenter=3, WindowWidth=6
    )
    assert np.flatnonzero(grey(modality)).tolist() == [2], "32 is looked up as 5, the end of the window"
    assert grey(modality)[0, 2] == 255


def test_monochrome1_is_inverted(write: Write) -> None:
    for fields in ({}, {"WindowCenter": 1000, "WindowWidth": 400}):
        plain = grey(write(RAMP, "plain.dcm", **fields))
        inverted = grey(write(RAMP, "inverted.dcm", PhotometricInterpretation="MONOCHROME1", **fields))
        assert (inverted == 255 - plain).all()


def test_eight_bits_signed_values_and_flat_images(write: Write) -> None:
    small = np.arange(256).reshape(16, 16).astype(np.uint8)
    assert (grey(write(small)) == linear(small, *np.percentile(small, (0.5, 99.5)))).all()
    signed = (RAMP.astype(int) - 2048).astype(np.int16)
    assert (grey(write(signed)) == grey(write(RAMP, "unsigned.dcm"))).all()
    assert grey(write(np.full((9, 9), 300, np.uint16), "flat.dcm")).max() == 0
    spot = np.zeros((40, 40), np.uint16)
    spot[3, 3], spot[4, 4] = 70, 100
    assert grey(write(spot, "spot.dcm"))[[3, 4], [3, 4]].tolist() == [178, 255]


def test_colour_becomes_rgb(write: Write) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    assert (decode(write(colours)) == colours).all()
    planes = write(colours, "planes.dcm", PlanarConfiguration=1, PixelData=np.moveaxis(colours, 2, 0).tobytes())
    assert (decode(planes) == colours).all()
    converted = np.array(Image.fromarray(colours).convert("YCbCr"))
    ybr = write(converted, "ybr.dcm", PhotometricInterpretation="YBR_FULL")
    assert np.abs(decode(ybr).astype(int) - colours).max() <= 3
    assert read_image(ybr)[1] == (8, STORED, 1, True)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_palette_becomes_rgb(write: Write, bits: int) -> None:
    red, green, blue = np.random.default_rng(0).integers(0, 256, (3, 8)).astype(np.uint8)
    tables = {
        f"{name}PaletteColorLookupTableData": table.tobytes() if bits == 8 else (table.astype("<u2") * 257).tobytes()
        for name, table in (("Red", red), ("Green", green), ("Blue", blue))
    }
    descriptors = {f"{name}PaletteColorLookupTableDescriptor": [8, 2, bits] for name in ("Red", "Green", "Blue")}
    stored = np.arange(16, dtype=np.uint8).reshape(4, 4)
    path = write(stored, PhotometricInterpretation="PALETTE COLOR", **tables, **descriptors)
    entry = np.clip(stored.astype(int) - 2, 0, 7)
    assert (decode(path) == np.stack([red[entry], green[entry], blue[entry]], axis=-1)).all()


@pytest.mark.parametrize(("frames", "middle"), [(2, 1), (5, 2)])
def test_of_several_frames_the_middle_one_is_read(write: Write, frames: int, middle: int) -> None:
    volume = np.random.default_rng(0).integers(0, 4096, (frames, 8, 6), dtype=np.uint16)
    path = write(volume, WindowCenter=2000, WindowWidth=2000)
    assert (grey(path) == grey(write(volume[middle], "one.dcm", WindowCenter=2000, WindowWidth=2000))).all()
    assert read_image(path)[1].frames == frames


def test_an_enhanced_file_has_a_window_and_a_rescale_for_each_frame(write: Write) -> None:
    volume = np.stack([RAMP, RAMP, RAMP])
    shared = sequence(PixelValueTransformationSequence=sequence(RescaleSlope=2, RescaleIntercept=10))
    each = [
        sequence(FrameVOILUTSequence=sequence(WindowCenter=center, WindowWidth=401))[0] for center in (1, 3000, 9000)
    ]
    path = write(volume, SharedFunctionalGroupsSequence=shared, PerFrameFunctionalGroupsSequence=each)
    assert np.allclose(grey(path), linear(RAMP * 2.0 + 10, 2999.5 - 200, 2999.5 + 200), atol=1)


def test_compressed_pixels_are_decoded_where_nothing_more_is_needed(write: Write) -> None:
    plain = pydicom.dcmread(write(RAMP, WindowCenter=2000, WindowWidth=3000))
    expected = grey(Path(str(plain.filename)))
    plain.compress(RLELossless)
    plain.save_as(str(plain.filename))
    assert (grey(Path(str(plain.filename))) == expected).all()


@pytest.mark.parametrize(
    ("syntax", "says"),
    [
        (JPEGLosslessSV1, r"transfer syntax JPEG Lossless.*pip install 'pylibjpeg\[all\]'.*or convert the file"),
        (MPEG2MPML, r"transfer syntax MPEG2 .*Convert the file to an uncompressed one"),
    ],
)
def test_a_transfer_syntax_that_cannot_be_decoded_is_named(write: Write, syntax: Any, says: str) -> None:
    with pytest.raises(LincBenchError, match=says):
        decode(write(RAMP, syntax=syntax, PixelData=encapsulate([b"\0" * 16])))


def test_deflated_files_are_not_unpacked(write: Write) -> None:
    """Some kilobytes could become gigabytes."""
    with pytest.raises(LincBenchError, match=r"transfer syntax Deflated.*Convert the file"):
        decode(write(np.zeros((999, 999), np.uint16), syntax=DeflatedExplicitVRLittleEndian))


BAD = {
    "no pixels": ({"PixelData": None}, r"image\.dcm is a DICOM file without pixels: a report, or damaged\."),
    "too large": (
        {"Rows": 65535, "Columns": 65535},
        "65,535 × 65,535 pixels are more than 100,000,000",
    ),
    "other size": ({"Rows": 100, "Columns": 99}, "cannot be read as an image"),
    "no size": ({"Rows": None}, "cannot be read as an image .its header has no Rows"),
    "frames": ({"NumberOfFrames": 10**9}, "cannot be read as an image"),
    "kind": ({"PhotometricInterpretation": "CMYK"}, "cannot be read as an image"),
    "escape": ({"PhotometricInterpretation": "A\x1b[31m\nB"}, "cannot be read as an image"),
    "samples": ({"SamplesPerPixel": 3, "PlanarConfiguration": 0}, "cannot be read as an image"),
    "bits": ({"BitsAllocated": 13}, "cannot be read as an image"),
    "stored": ({"BitsStored": 99}, "cannot be read as an image"),
    "slope": ({"RescaleSlope": 0, "RescaleIntercept": 0}, "its rescale slope is 0"),
    "table": ({"VOILUTSequence": lookup([1, 2], 0, 99)}, "its lookup table has 99 bits"),
    "empty table": ({"VOILUTSequence": [pydicom.Dataset()]}, "cannot be read as an image"),
}


@pytest.mark.parametrize("problem", BAD)
def test_files_with_wrong_headers_are_refused_in_a_sentence(write: Write, problem: str) -> None:
    changes, says = BAD[problem]
    path = write(RAMP, **{key: value for key, value in changes.items() if value is not None})
    if removed := [key for key, value in changes.items() if value is None]:
        file = pydicom.dcmread(path)
        for key in removed:
            delattr(file, key)
        file.save_as(path)
    with pytest.raises(LincBenchError, match=says) as caught:
        decode(path)
    assert str(caught.value).isprintable()
    assert "Traceback" not in str(caught.value)


def test_every_truncated_or_changed_file_is_a_sentence_or_an_image(write: Write, tmp_path: Path) -> None:
    whole = write(RAMP, WindowCenter=1000, WindowWidth=400, RescaleSlope=1, RescaleIntercept=0).read_bytes()
    generator, refused, shown = np.random.default_rng(0), 0, 0
    path = tmp_path / "damaged.dcm"
    for attempt in range(300):
        content = bytearray(whole[: generator.integers(len(whole))] if attempt % 2 else whole)
        for position in generator.integers(0, min(len(content), 900) or 1, 3 if content else 0):
            content[position] = generator.integers(256)
        path.write_bytes(content)
        try:
            shown += decode(path).dtype == np.uint8
        except LincBenchError as error:
            refused += str(error).isprintable()
    assert refused + shown == 300
    assert min(refused, shown) > 30
    path.write_bytes(whole[:-1])
    with pytest.raises(LincBenchError, match=r"damaged\.dcm cannot be read as an image"):
        decode(path)
    path.write_bytes(b"no image")
    with pytest.raises(LincBenchError, match="it does not begin as a DICOM file does"):
        decode(path)


def test_a_dicom_file_without_an_ending_is_read_and_other_files_are_not(write: Write, tmp_path: Path) -> None:
    for number in range(60):
        write(RAMP + number, f"{'ab'[number % 2]}/1.2.840.{number}")
    (tmp_path / "a" / "notes").write_text("no image")
    found = read_audited_data(tmp_path)
    assert len(found.ids) == 60
    assert found.unreadable == (("a/notes", "it has no image file extension, and is no DICOM file; rename an image"),)


def test_without_pydicom_the_error_says_what_to_install(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        write(RAMP + number, f"{'ab'[number % 2]}/{number}.dcm")
    monkeypatch.setitem(sys.modules, "pydicom", None)
    medical_files._pydicom.cache_clear()
    for read in (read_audited_data, load_by_path):
        with pytest.raises(LincBenchError, match=r"in the folder of this clone, with: pip install -e '\.\[dicom\]'$"):
            read(tmp_path)


DEEP = [("png", np.uint16), ("tif", np.uint16), ("tif", np.int32), ("tif", np.float32)]


@pytest.mark.parametrize(("ending", "dtype"), DEEP)
def test_images_of_more_than_8_bits_are_shown_between_percentiles(tmp_path: Path, ending: str, dtype: type) -> None:
    values = (RAMP * 10).astype(dtype)
    values[0, 0] = 65000
    Image.fromarray(values).save(tmp_path / f"deep.{ending}")
    assert (grey(tmp_path / f"deep.{ending}") == linear(values, *np.percentile(values, (0.5, 99.5)))).all()
    assert read_image(tmp_path / f"deep.{ending}")[1] == (16, PERCENTILE, 1, False)


def test_values_that_are_no_numbers_are_black(tmp_path: Path) -> None:
    values = RAMP.astype(np.float32)
    values[5, 5], values[6, 6] = np.nan, np.inf
    Image.fromarray(values).save(tmp_path / "a.tif")
    assert grey(tmp_path / "a.tif")[5, 5] == 0
    assert grey(tmp_path / "a.tif")[8, 8] in range(120, 140)
    Image.fromarray(np.full((4, 4), np.nan, np.float32)).save(tmp_path / "b.tif")
    with pytest.raises(LincBenchError, match="no pixel is a finite number"):
        decode(tmp_path / "b.tif")


def test_a_tiff_whose_zero_is_white_is_inverted(tmp_path: Path) -> None:
    Image.fromarray(RAMP).save(tmp_path / "black.tif")
    Image.fromarray(RAMP).save(tmp_path / "white.tif", tiffinfo={262: 0})
    assert (grey(tmp_path / "white.tif") == 255 - grey(tmp_path / "black.tif")).all()


def test_eight_bit_images_are_as_they_were(tmp_path: Path) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    Image.fromarray(colours).save(tmp_path / "a.png")
    assert (decode(tmp_path / "a.png") == colours).all()
    dark = np.arange(30, dtype=np.uint8).reshape(5, 6)
    Image.fromarray(dark).save(tmp_path / "b.png")
    assert (grey(tmp_path / "b.png") == dark).all()


def folder_of(write: Write, count: int = 60, name: str = "data", **fields: Any) -> Path:
    """DICOM files of two classes: bright at the top, and bright at the bottom."""
    generator = np.random.default_rng(0)
    for number in range(count):
        image = generator.integers(0, 800, (16, 16), dtype=np.uint16)
        image[slice(0, 8) if number % 2 else slice(8, 16)] += 2000
        path = write(image, f"{name}/{'ab'[number % 2]}/{number:02}.dcm", **fields)
    return path.parent.parent


def test_a_folder_of_dicom_files_is_audited_and_what_was_done_is_said(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(write, WindowCenter=1200, WindowWidth=3000)
    for number in range(0, 10):
        write(RAMP + number, f"data/a/plain{number}.dcm")
    write(np.stack([RAMP, RAMP[::-1], RAMP]), "data/b/frames.dcm")
    write(None, "data/b/report.dcm")
    said: list[str] = []
    found = audit(folder, tmp_path / "out", backbone=Backbone(image_size=32), say=said.append)
    sentence = (
        "71 DICOM files: 60 by their window, 11 by percentiles; 1 with several frames, of which the middle one is used."
    )
    assert sentence in said
    assert json.loads((tmp_path / "out" / "audit.json").read_text())["images"] == sentence
    assert len(found.samples) == 71
    why = "is a DICOM file without pixels: a report, or damaged. Repair or remove it."
    assert found.unreadable == (("b/report.dcm", f"{folder}/b/report.dcm {why}"),)
    assert not any("small findings" in line for line in said)


def test_a_folder_of_dicom_files_can_be_studied(write: Write) -> None:
    folder = folder_of(write, WindowCenter=1200, WindowWidth=3000)
    dataset = load_dataset(str(folder))
    assert sum(dataset.info.sizes) == 60
    for image, label in zip(dataset.train.images[0:40], dataset.train.labels, strict=False):
        halves = image[:8].mean(), image[8:].mean()
        assert np.argmax(halves) == 1 - label


def test_the_identity_is_that_of_the_files(write: Write) -> None:
    folder = folder_of(write)
    before, pixels = read_audited_data(folder), load_dataset(str(folder)).info.identity
    write(RAMP, "data/a/00.dcm")
    assert read_audited_data(folder).pixels != before.pixels
    assert load_dataset(str(folder)).info.identity != pixels


@pytest.mark.parametrize("read", [read_audited_data, load_by_path])
def test_mixed_bit_depths_are_refused(tmp_path: Path, write: Write, read: Callable[[Path], object]) -> None:
    for number in range(60):
        (path := tmp_path / "data" / "ab"[number % 2] / f"{number:02}.png").parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RAMP if number < 50 else RAMP.astype(np.uint8)).save(path)
    plain, deep = r"8 bits in 10 images \(such as .?a/50\.png.*\)", r"more in 50 images \(such as .?a/00\.png"
    says = f"data mixes bit depths: {plain} and {deep}"
    with pytest.raises(LincBenchError, match=says):
        read(tmp_path / "data")
    folder = folder_of(write, name="dicom")
    write(RAMP.astype(np.uint8), "dicom/a/eight.dcm")
    with pytest.raises(LincBenchError, match=r"8 bits in 1 image \(such as .?a/eight\.dcm.* and more in 60 images"):
        read(folder)


def test_twelve_and_sixteen_bits_are_no_mixture(tmp_path: Path, write: Write) -> None:
    folder = folder_of(write)
    write(RAMP, "data/a/twelve.dcm", BitsStored=12, HighBit=11)
    Image.fromarray(RAMP).save(folder / "b" / "sixteen.png")
    assert read_audited_data(folder).shown == (
        "61 DICOM files: 61 by percentiles. 1 image of more than 8 bits: each from its own 0.5th to 99.5th percentile."
    )


def large(shape: tuple[int, int]) -> AuditedData:
    return AuditedData(Path(), "large", "", "", ("a",), ("a", "b"), np.zeros(1), np.zeros((1, 1, 1)), shape=shape)


def test_what_small_inputs_lose_is_said_with_the_time_of_larger_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = SimpleNamespace(sources=None, stores_to_compute=lambda: [1])
    sizes: list[int] = []

    def planned(study: Any, sources: Any) -> Any:
        sizes.append(study.grids[0].backbone.image_size)
        return plan

    monkeypatch.setattr(scoring, "plan_study", planned)
    monkeypatch.setattr(scoring, "estimate", lambda plan, workers: (1200.0, 0))
    said = scoring._about_larger_images(large((512, 480)), Path("list"), plan, AuditSettings(), 100.0)  # type: ignore[arg-type]
    assert said == (
        "Images are about 480 × 512 pixels and are reduced to 64 × 64; small findings may be lost. --image-size 224 "
        "keeps more; training then takes about 20 min here, about 12 times as long."
    )
    assert sizes == [224]
