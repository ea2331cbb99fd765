"""Every loader on files that nobody meant to write: what cannot be read is a sentence, never a traceback."""

import io
import json
import shutil
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from safetensors.torch import save_file

from benchmark.data.datasets import load_dataset
from benchmark.disk.files import UNREADABLE
from benchmark.errors import LincBenchError
from benchmark.networks.loading import read_state_dict
from benchmark.record.run_record import open_record
from benchmark.runs.scores import read_scores
from tests.conftest import medmnist_arrays
from tests.fuzzing import CASES, LOADERS, any_value, fuzz, spoiled, told
from tests.snapshot import snapshot

DECODED: Counter[str] = Counter()  # cases in which at least one image was decoded


def read(loader: str, call: Callable[[], Any]) -> None:
    """It succeeds, or says in words what is wrong."""
    CASES[loader] += 1
    said = "nothing is wrong"
    try:
        call()
    except LincBenchError as error:
        said = str(error)
    assert said.strip()
    DECODED[loader] += said == "nothing is wrong" or "cannot be read as an image" in said


def every_pixel(dataset: Any) -> None:
    for split in dataset.splits:
        for image in split.images[:]:
            assert np.asarray(image).dtype == np.uint8


def npz_bytes(content: dict[str, np.ndarray], compress: bool = False) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(buffer, **content)
    return buffer.getvalue()


def whole_npz(compress: bool) -> bytes:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (12, 5, 5), dtype=np.uint8)
    return npz_bytes(medmnist_arrays(np.arange(12) % 2, images, 6, 3), compress)


@fuzz
@given(st.one_of(spoiled(whole_npz(False)), spoiled(whole_npz(True)), st.binary(max_size=300)))
def test_damaged_npz(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder, "data.npz")).write_bytes(content)
        read("npz", lambda: every_pixel(load_dataset(str(path))))


any_array = arrays.arrays(
    st.one_of(arrays.scalar_dtypes(), st.just(np.dtype(np.uint8))),
    arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4),
)
keys = [f"{split}_{part}" for split in ("train", "val", "test") for part in ("images", "labels")]


@fuzz
@given(st.dictionaries(st.sampled_from([*keys, "extra"]), any_array), st.booleans())
def test_npz_of_other_arrays(content: dict[str, np.ndarray], fill: bool) -> None:
    generator = np.random.default_rng(0)
    usual = medmnist_arrays(np.arange(12) % 2, generator.integers(0, 256, (12, 5, 5), dtype=np.uint8), 6, 3)
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder, "data.npz")).write_bytes(npz_bytes((usual if fill else {}) | content))
        read("npz", lambda: every_pixel(load_dataset(str(path))))


def image_bytes(kind: str) -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


any_image = st.one_of(*(spoiled(image_bytes(kind)) for kind in ("png", "jpeg", "gif", "bmp", "tiff", "webp")))


cells = st.one_of(
    st.sampled_from(["a.png", "b.png", "../a.png", "/etc/hostname", "sub/../a.png", "a.png\0", "x" * 5000, ""]),
    st.text(max_size=20),
)
labels = st.one_of(st.sampled_from(["0", "1", "01", "9" * 5000, "٣", "cat", ""]), st.text(max_size=5))
USUAL_ROWS = [(f"{split}-{name}.png", name, split) for split in ("train", "val", "test") for name in "ab"]
odd_rows = st.tuples(cells, labels, st.sampled_from(["train", "val", "test", "other", ""]))
more_rows = [("a.png", "a", "train"), ("b.png", "b", "test"), USUAL_ROWS[0]]
rows = st.lists(st.one_of(st.sampled_from(more_rows), odd_rows), max_size=2)
headers = st.sampled_from(["path,label", "label,path", "path;label", "", "path,path,label"])


@fuzz
@given(rows, st.one_of(st.just("path,label,split"), headers), st.data())
def test_csv_of_odd_rows(content: list[tuple[str, str, str]], header: str, data: st.DataObject) -> None:
    """Among rows as they should be, of which one image may be damaged."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.png", "b.png", *(name for name, _, _ in USUAL_ROWS)):
            Image.fromarray(np.zeros((4, 4), np.uint8)).save(Path(folder, name))
        Path(folder, "train-b.png").write_bytes(data.draw(st.one_of(any_image, st.just(image_bytes("png")))))
        columns = data.draw(st.sampled_from([header.count(",") + 1, 3]))
        text = "\n".join([header, *(",".join(row[:columns]) for row in [*USUAL_ROWS, *content])])
        (path := Path(folder, "data.csv")).write_bytes(text.encode(errors="surrogatepass"))
        read("CSV", lambda: every_pixel(load_dataset(str(path))))


@fuzz
@given(st.binary(max_size=300))
def test_csv_of_any_bytes(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder, "data.csv")).write_bytes(content)
        read("CSV", lambda: every_pixel(load_dataset(str(path))))


names = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=12)


odd_files = st.lists(st.tuples(names, st.one_of(any_image, st.binary(max_size=100))), max_size=3)


@fuzz
@given(odd_files, st.one_of(any_image, st.binary(max_size=100)), st.sampled_from(["png", "gif", "JPG"]), st.booleans())
def test_folder_of_damaged_images_and_odd_names(
    content: list[tuple[str, bytes]], damaged: bytes, ending: str, is_split: bool
) -> None:
    """Among classes as they should be, of which one has a damaged image."""
    with tempfile.TemporaryDirectory() as folder:
        splits = ("train", "val", "test") if is_split else (".",)
        for split, name, number in product(splits, ("cat", "dog"), range(10 // len(splits))):
            (place := Path(folder, split, name)).mkdir(parents=True, exist_ok=True)
            (place / f"{number}.png").write_bytes(image_bytes("png"))
        Path(folder, splits[0], "cat", f"damaged.{ending}").write_bytes(damaged)
        for number, (name, data) in enumerate(content):
            with suppress(OSError):  # a name that this file system does not take
                (place := Path(folder, splits[number % len(splits)], name)).mkdir(parents=True, exist_ok=True)
                (place / f"{number}.png").write_bytes(data)
        read("image folder", lambda: every_pixel(load_dataset(folder)))


@fuzz
@given(st.lists(st.tuples(st.sampled_from(["cat", "dog", "link"]), names, st.booleans()), min_size=1, max_size=3))
def test_folder_with_links(links: list[tuple[str, str, bool]]) -> None:
    """To a folder of images or an image that is somewhere else, which nobody reads, changes or removes."""
    with tempfile.TemporaryDirectory() as place:
        folder, precious = Path(place, "images"), Path(place, "precious")
        for kind, number in product(("images/cat", "images/dog", "precious"), range(10)):
            Path(place, kind).mkdir(parents=True, exist_ok=True)
            Path(place, kind, f"{number}.png").write_bytes(image_bytes("png"))
        for parent, name, is_folder in links:
            with suppress(OSError):
                link = folder / name if parent == "link" else folder / parent / f"{name}.png"
                link.symlink_to(precious if is_folder else precious / "0.png")
        before = snapshot(precious)
        read("image folder", lambda: every_pixel(load_dataset(str(folder))))
        assert snapshot(precious) == before


def weight_bytes(suffix: str) -> bytes:
    state = {"a.weight": torch.ones(3, 2), "a.bias": torch.zeros(3)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"weights{suffix}")
        save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
        return path.read_bytes()


@fuzz
@given(st.data(), st.sampled_from([".safetensors", ".pth"]))
def test_damaged_weights(data: st.DataObject, suffix: str) -> None:
    content = data.draw(st.one_of(spoiled(weight_bytes(suffix)), st.binary(max_size=200)))
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder, f"weights{suffix}")).write_bytes(content)
        read("weights", lambda: read_state_dict(path))


@fuzz
@given(state=any_value | st.dictionaries(st.integers(), st.just(torch.ones(2)), min_size=1))
def test_weights_that_hold_something_else(state: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        torch.save(state, path := Path(folder, "weights.pth"))
        read("weights", lambda: read_state_dict(path))


@pytest.mark.long
def test_damaged_records_and_scores(quick_run: Path, tmp_path: Path) -> None:
    run = next((quick_run / "runs").glob("*-linc-*"))
    files = sorted(file.name for file in run.iterdir())
    scores = next((quick_run / "scores").rglob("linc-*.npy"))

    @fuzz
    @given(st.data(), st.sampled_from(files))
    def damaged_record(data: st.DataObject, name: str) -> None:
        copy = Path(shutil.copytree(run, tmp_path / "copy", dirs_exist_ok=True))
        (copy / name).write_bytes(data.draw(spoiled((run / name).read_bytes())))
        read("record", lambda: open_record(copy))

    @fuzz
    @given(any_value, st.sampled_from(["record.json", "history.json"]))
    def other_json(value: Any, name: str) -> None:
        copy = Path(shutil.copytree(run, tmp_path / "copy", dirs_exist_ok=True))
        (copy / name).write_text(json.dumps(value))
        read("record", lambda: open_record(copy))

    @fuzz
    @given(spoiled(scores.read_bytes()))
    def damaged_scores(content: bytes) -> None:
        CASES["scores"] += 1
        shutil.copy(scores.with_suffix(".json"), tmp_path / "scores.json")
        (tmp_path / "scores.npy").write_bytes(content)
        try:
            found, _ = read_scores(tmp_path / "scores.npy")
        except UNREADABLE:
            return
        assert (found == read_scores(scores)[0]).all(), "what is read is what was written"

    damaged_record()
    other_json()
    damaged_scores()


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    """A file that would run code when it is unpickled does not run it."""

    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    objects = np.array([Attack()], dtype=object)
    np.savez(tmp_path / "data.npz", **dict.fromkeys(keys, objects))
    np.save(tmp_path / "scores.npy", objects, allow_pickle=True)
    torch.save({"a": Attack()}, tmp_path / "weights.pth")
    with pytest.raises(LincBenchError):
        load_dataset(str(tmp_path / "data.npz"))
    with pytest.raises(LincBenchError):
        read_state_dict(tmp_path / "weights.pth")
    with pytest.raises(ValueError, match="Python objects"):
        read_scores(tmp_path / "scores.npy")
    assert not (tmp_path / "ran").exists()


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    million_zeros = compressor.compress(bytes(10**6)) + compressor.flush(zlib.Z_FULL_FLUSH)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("train_images.npy", million_zeros * 1100 + compressor.flush())
        member = file.getinfo("train_images.npy")
        member.compress_type, member.file_size = zipfile.ZIP_DEFLATED, 1100 * 10**6
    assert path.stat().st_size < 2 * 10**6
    with pytest.raises(LincBenchError, match=r"unpack to 1,100,000,000, more than images or weights do"):
        load_dataset(str(path))


@pytest.mark.parametrize("size", [(100_000, 100_000), (100_000, 1001)])
def test_an_enormous_image_is_refused_with_a_sentence(size: tuple[int, int], tmp_path: Path) -> None:
    """A file of a few bytes that says that it is so large."""
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for number in range(10):
            Image.new("L", (4, 4)).save(tmp_path / name / f"{number}.bmp")
    for path in (tmp_path / "cat").iterdir():
        content = bytearray(path.read_bytes())
        content[18:26] = b"".join(side.to_bytes(4, "little") for side in size)
        path.write_bytes(content)
    with pytest.raises(LincBenchError, match=r"cannot be read as an image \(.*pixels"):
        every_pixel(load_dataset(str(tmp_path)))


def test_a_file_of_another_format_is_not_given_to_its_decoder(tmp_path: Path) -> None:
    """Pillow starts Ghostscript for PostScript, whatever the file is called."""
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for number in range(10):
            Image.new("RGB", (4, 4)).save(tmp_path / name / f"{number}.png", "EPS")
    with pytest.raises(LincBenchError, match="cannot identify image file"):
        every_pixel(load_dataset(str(tmp_path)))


@pytest.mark.long
def test_the_number_of_cases_is_told(record_property: Callable[[str, object], None]) -> None:
    """The last of this file, which one process runs in order."""
    assert len(CASES) == 6
    for loader in ("CSV", "image folder"):
        assert DECODED[loader] > CASES[loader] / 10, f"hardly a case of {loader} comes as far as an image"
    record_property("told", f"{told(LOADERS)} of damaged or odd files: only sentences")
