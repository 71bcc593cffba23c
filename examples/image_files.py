"""Loaders for the files in which Fashion-MNIST, MNIST and CIFAR-10 are published."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["DataFileError", "read_cifar10", "read_idx_images"]

_IDX_UINT8 = 8
"""The code of uint8 elements in the third byte of an IDX file."""

_CIFAR_RECORD = 1 + 3 * 32 * 32
_CIFAR_FILES = {"train": [f"data_batch_{number}.bin" for number in range(1, 6)], "test": ["test_batch.bin"]}
_IDX_PREFIX = {"train": "train", "test": "t10k"}


class DataFileError(ValueError):
    """A file is not what its name says."""


def read_idx_images(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels of MNIST or Fashion-MNIST.

    Parameters
    ----------
    folder
        Holds ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, ``t10k-images-idx3-ubyte`` and
        ``t10k-labels-idx1-ubyte``, each as it is or with ``.gz`` behind its name.
    part
        ``train`` or ``test``.

    Returns
    -------
    uint8 (count, 1, 28, 28), and uint8 (count,).

    Raises
    ------
    FileNotFoundError
        A file is missing.
    DataFileError
        A file is damaged.
    """
    prefix = _IDX_PREFIX[part]
    images = _read_idx(folder / f"{prefix}-images-idx3-ubyte", 3)
    labels = _read_idx(folder / f"{prefix}-labels-idx1-ubyte", 1)
    if len(images) != len(labels):
        raise DataFileError(f"{folder}: {len(images)} images, but {len(labels)} labels for {part}")
    return images[:, np.newaxis], labels


def _read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    contents, path = _contents(path)
    header = 4 * (1 + dimensions)
    if contents[:4] != bytes((0, 0, _IDX_UINT8, dimensions)) or len(contents) < header:
        raise DataFileError(f"{path} is no IDX file of uint8 in {dimensions} dimensions")
    shape = struct.unpack(f">{dimensions}I", contents[4:header])
    data = np.frombuffer(contents, np.uint8, offset=header)
    if data.size != np.prod(shape, dtype=np.int64):
        raise DataFileError(f"{path} has {data.size} elements, not those of {' × '.join(map(str, shape))}")
    return data.reshape(shape)


def _contents(path: Path) -> tuple[bytes, Path]:
    packed = path.with_name(f"{path.name}.gz")
    if path.exists() or not packed.exists():
        return path.read_bytes(), path
    try:
        return gzip.decompress(packed.read_bytes()), packed
    except (gzip.BadGzipFile, EOFError) as error:
        raise DataFileError(f"{packed} is no gzip file, or truncated: {error}") from None


def read_cifar10(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels of CIFAR-10's binary version.

    Parameters
    ----------
    folder
        Holds ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``.
    part
        ``train`` or ``test``.

    Returns
    -------
    uint8 (count, 3, 32, 32), and uint8 (count,).

    Raises
    ------
    FileNotFoundError
        A file is missing.
    DataFileError
        A file is damaged.
    """
    parts = []
    for name in _CIFAR_FILES[part]:
        data = np.fromfile(folder / name, np.uint8)
        if data.size == 0 or data.size % _CIFAR_RECORD or data[::_CIFAR_RECORD].max() > 9:
            raise DataFileError(f"{folder / name} holds no records of a label and {_CIFAR_RECORD - 1} bytes")
        parts.append(data.reshape(-1, _CIFAR_RECORD))
    records = np.concatenate(parts)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]
