"""Loaders for the public files of MNIST, Fashion-MNIST and CIFAR-10."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from examples.image_files import DataFileError, read_cifar10, read_idx_images

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(0, 256, (7, 28, 28)).astype(np.uint8)
LABELS = RANDOM.integers(0, 10, 7).astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    """The contents of an IDX file."""
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder: Path, images: bytes, labels: bytes) -> None:
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(labels)


def test_idx_packed_and_unpacked(tmp_path):
    write_idx(tmp_path, idx(IMAGES), idx(LABELS))
    images, labels = read_idx_images(tmp_path, "test")
    np.testing.assert_array_equal(images, IMAGES[:, np.newaxis])
    np.testing.assert_array_equal(labels, LABELS)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (idx(IMAGES)[:-1], idx(LABELS), "has 5487 elements, not those of 7 × 28 × 28"),
        (idx(IMAGES[:6]), idx(LABELS), "6 images, but 7 labels for test"),
        (idx(LABELS), idx(LABELS), "images-idx3-ubyte.gz is no IDX file of uint8 in 3 dimensions"),
        (idx(IMAGES), b"", "labels-idx1-ubyte is no IDX file of uint8 in 1 dimensions"),
    ],
)
def test_damaged_idx(tmp_path, images, labels, message):
    write_idx(tmp_path, images, labels)
    with pytest.raises(DataFileError, match=message):
        read_idx_images(tmp_path, "test")


def test_missing_and_badly_packed_idx(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_idx_images(tmp_path, "train")
    write_idx(tmp_path, idx(IMAGES), idx(LABELS))
    packed = tmp_path / "t10k-images-idx3-ubyte.gz"
    packed.write_bytes(packed.read_bytes()[:100])
    with pytest.raises(DataFileError, match="is no gzip file, or truncated"):
        read_idx_images(tmp_path, "test")


def test_cifar10(tmp_path):
    records = RANDOM.integers(0, 256, (6, 3073)).astype(np.uint8)
    records[:, 0] %= 10
    for number in range(1, 6):
        records[number].tofile(tmp_path / f"data_batch_{number}.bin")
    records[0].tofile(tmp_path / "test_batch.bin")
    images, labels = read_cifar10(tmp_path, "train")
    np.testing.assert_array_equal(images.reshape(5, -1), records[1:, 1:])
    np.testing.assert_array_equal(labels, records[1:, 0])
    assert read_cifar10(tmp_path, "test")[0].shape == (1, 3, 32, 32)


@pytest.mark.parametrize("record", [b"", bytes(3072), b"\x0a" + bytes(3072)])
def test_damaged_cifar10(tmp_path, record):
    (tmp_path / "test_batch.bin").write_bytes(record)
    with pytest.raises(DataFileError, match=r"test_batch.bin holds no records of a label and 3072 bytes"):
        read_cifar10(tmp_path, "test")
