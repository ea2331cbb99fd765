"""Features of images without any pretrained network (Coates, Ng and Lee, AISTATS 2011).

Small patches, each normalised and all whitened, are compared with centres of k-means; a patch is near a centre if it is
nearer than to centres on average, and how much nearer is summed over each quarter of the image. Simple classifiers of
these features say which images are hard, and what for; no network that is judged makes its own noise.
"""

import numpy as np

from benchmark.data.image_files import Images
from benchmark.seeds import numpy_generator

PATCH, CENTRES, EXAMPLES = 6, 256, 50_000
STEP = 2  # pixels from one patch to the next
AT_A_TIME = 256  # small images
SIDE, MANY = 28, 32  # pixels: MedMNIST's; images that are read at once


def small_images(images: Images) -> np.ndarray:
    """8-bit images × 28 × 28 × 1 or 3; those of another size are shrunk or enlarged to a square, never cropped."""
    windows = (images[start : start + MANY] for start in range(0, len(images), MANY))
    return np.stack([_small(image) for window in windows for image in window])


def _small(image: np.ndarray) -> np.ndarray:
    from PIL import Image

    if image.shape[:2] != (SIDE, SIDE):
        image = np.asarray(Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BOX))
    return image[:, :, None] if image.ndim == 2 else image


def patch_features(images_NHWC: np.ndarray) -> np.ndarray:
    """Of 8-bit images: images × (centres in each quarter)."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    generator = numpy_generator(0, "patches")
    with threadpool_limits(limits=1):  # libraries' own threads change bytes
        some = images_NHWC[generator.choice(len(images_NHWC), min(len(images_NHWC), 2000), replace=False)]
        examples = _normalised(_patches(some)).reshape(-1, PATCH * PATCH * images_NHWC.shape[3])
        examples = examples[generator.permutation(len(examples))[:EXAMPLES]]
        mean, whitening = examples.mean(axis=0), _whitening(examples)
        means = MiniBatchKMeans(CENTRES, batch_size=4096, n_init=1, max_iter=20, random_state=0)
        centres_KP = means.fit((examples - mean) @ whitening).cluster_centers_.astype(np.float32)
        return np.concatenate(
            [
                _pooled(_nearness((_normalised(_patches(images)) - mean) @ whitening, centres_KP))
                for images in np.array_split(images_NHWC, -(-len(images_NHWC) // AT_A_TIME))
            ]
        )


def _patches(images_NHWC: np.ndarray) -> np.ndarray:
    """Images × rows × columns × values."""
    images_NHWC = images_NHWC / np.float32(127.5)
    windows = np.lib.stride_tricks.sliding_window_view(images_NHWC, (PATCH, PATCH), axis=(1, 2))[:, ::STEP, ::STEP]
    return windows.reshape(*windows.shape[:3], -1)


def _normalised(patches: np.ndarray) -> np.ndarray:
    """Brightness and contrast removed; a little is added to the variance of flat patches."""
    centred = patches - patches.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(centred.var(axis=-1, keepdims=True) + 1e-3)


def _whitening(examples_NP: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(np.cov(examples_NP, rowvar=False))
    return ((vectors / np.sqrt(values + 0.1)) @ vectors.T).astype(np.float32)


def _nearness(patches: np.ndarray, centres_KP: np.ndarray) -> np.ndarray:
    products = patches @ centres_KP.T
    squared = (patches**2).sum(axis=-1, keepdims=True) - 2 * products + (centres_KP**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squared, 0))
    return np.maximum(distances.mean(axis=-1, keepdims=True) - distances, 0)


def _pooled(nearness: np.ndarray) -> np.ndarray:
    rows, columns = (-(-size // 2) for size in nearness.shape[1:3])
    quarters = [
        half.sum(axis=(1, 2))
        for strip in (nearness[:, :rows], nearness[:, rows:])
        for half in (strip[:, :, :columns], strip[:, :, columns:])
    ]
    return np.concatenate(quarters, axis=1)
