"""Images of one small size, whatever the data set has."""

import numpy as np

from benchmark.data.image_files import Images

SIDE = 28  # pixels: MedMNIST's
AT_A_TIME = 1024


def small_images(images: Images) -> np.ndarray:
    """8-bit images × 28 × 28 × 1 or 3; those of another size are shrunk or enlarged to a square, never cropped."""
    windows = (images[start : start + AT_A_TIME] for start in range(0, len(images), AT_A_TIME))
    return np.stack([_small(image) for window in windows for image in window])


def _small(image: np.ndarray) -> np.ndarray:
    from PIL import Image

    if image.shape[:2] != (SIDE, SIDE):
        image = np.asarray(Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BOX))
    return image[:, :, None] if image.ndim == 2 else image
