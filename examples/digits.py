"""Learn to read handwritten digits: a small convolutional network, 4,000 digits, under a minute.

    python examples/digits.py [--epochs 8] [--batch 128] [--seed 1] [--output digits.png]

It trains on 4,000 digits of MNIST, reads 1,000 that it has not seen, prints how many it got right,
and writes a picture of some of them with what it read under each. `DEVICE=C` in the environment
runs the same program on another device.
"""

import argparse
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treadle import Tensor, nn, no_grad

try:
    from PIL import Image, ImageDraw, ImageFont
    from tqdm import tqdm
except ImportError as error:
    message = f"this example needs {error.name}: pip install 'treadle[demo]'"
    raise ImportError(message, name=error.name) from error

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]
Batch = tuple[Floats, Labels]

RATE = 0.001  # the learning rate at first; it falls to zero by the last step
DATA = Path(__file__).parent / "data" / "mnist_5k.npz"
MAX_SHIFT = 1  # pixels by which a training digit may be moved, each way


class Convnet(nn.Module):
    """Four convolutions and a linear layer: (n, 1, 28, 28) pixels -> (n, 10) scores."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5)
        self.conv2 = nn.Conv2d(32, 32, 5, bias=False)
        self.norm1 = nn.BatchNorm(32)
        self.conv3 = nn.Conv2d(32, 64, 3)
        self.conv4 = nn.Conv2d(64, 64, 3, bias=False)
        self.norm2 = nn.BatchNorm(64)
        self.head = nn.Linear(64 * 3 * 3, 10)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of each digit, not normalised."""
        x = self.conv2(self.conv1(x).relu()).relu()
        x = self.norm1(x).max_pool2d(2)
        x = self.conv4(self.conv3(x).relu()).relu()
        x = self.norm2(x).max_pool2d(2)
        return self.head(x.flatten(1))


@dataclass
class Progress:
    """What a training run leaves: the loss of each step, and seconds to the end of the first."""

    losses: list[float]
    first_step: float


def load_digits(path: Path = DATA) -> tuple[Batch, Batch]:
    """((images, labels) to train, (images, labels) to test); images (n, 1, 28, 28) in 0..1."""
    with np.load(path) as data:
        parts = [(data[f"{part}_images"], data[f"{part}_labels"]) for part in ("train", "test")]
    train, test = (
        (np.float32(images[:, None]) / np.float32(255), labels.astype(np.int64))
        for images, labels in parts
    )
    return train, test


def shift(images: Floats, random: np.random.Generator) -> Floats:
    """Each image moved by up to MAX_SHIFT pixels, filled with paper."""
    edge = (MAX_SHIFT, MAX_SHIFT)
    padded = np.pad(images, ((0, 0), (0, 0), edge, edge))
    windows = np.lib.stride_tricks.sliding_window_view(padded, images.shape[2:], axis=(2, 3))
    down, right = random.integers(0, 2 * MAX_SHIFT + 1, (2, len(images)))
    return windows[np.arange(len(images)), :, down, right]


def batches(data: Batch, epochs: int, size: int, random: np.random.Generator) -> Iterator[Batch]:
    """Full batches in a new order each epoch; the digits that are left over are dropped."""
    images, labels = data
    for _ in range(epochs):
        order = random.permutation(len(images))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield shift(images[chosen], random), labels[chosen]


def train(model: Convnet, opt: nn.optim.Adam, data: Iterable[Batch], steps: int) -> Progress:
    """Train on the batches of `data`, about `steps` of them, with a bar that shows the loss."""
    model.train()
    progress = Progress([], 0.0)
    began = time.perf_counter()
    with tqdm(data, total=steps, unit="step", mininterval=0.5) as bar:
        for step, (images, labels) in enumerate(bar):
            opt.lr = RATE * (1 - step / steps)
            opt.zero_grad()
            loss = model(Tensor(images)).cross_entropy(Tensor(labels))
            loss.backward()
            opt.step()
            progress.losses.append(loss.item())
            progress.first_step = progress.first_step or time.perf_counter() - began
            bar.set_postfix(loss=f"{progress.losses[-1]:.3f}", refresh=False)
    return progress


def predict(model: Convnet, images: Floats, size: int = 200) -> Labels:
    """The digit that the model reads in each image."""
    model.eval()
    with no_grad():
        parts = [
            model(Tensor(images[start : start + size])).argmax(1).numpy()
            for start in range(0, len(images), size)
        ]
    return np.concatenate(parts)


def draw(images: Floats, read: Labels, labels: Labels, path: Path) -> None:
    """Write a PNG: test digits with what was read, then those misread, in red, with the truth."""
    columns, cell, text = 16, 56, 20
    some = list(range(6 * columns))
    wrong = list(np.flatnonzero(read != labels)[: 3 * columns])
    rows = [row[i : i + columns] for row in (some, wrong) for i in range(0, len(row), columns)]
    sheet = Image.new("RGB", (columns * cell, len(rows) * (cell + text)), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default()
    for y, row in enumerate(rows):
        for x, index in enumerate(row):
            left, top = x * cell, y * (cell + text)
            ink = Image.fromarray(np.uint8(255 - 255 * images[index, 0]))
            sheet.paste(ink.resize((cell, cell)), (left, top))
            right = read[index] == labels[index]
            words = f"{read[index]}" if right else f"{read[index]}, is {labels[index]}"
            middle = (left + cell // 2, top + cell + text // 2)
            pen.text(middle, words, "black" if right else "red", font, anchor="mm")
    sheet.save(path)


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description="Learn to read handwritten digits.")
    parser.add_argument("--epochs", type=int, default=8, help="times through the 4,000 digits")
    parser.add_argument("--batch", type=int, default=128, help="digits per step")
    parser.add_argument("--seed", type=int, default=1, help="for weights, order and shifts")
    parser.add_argument("--output", type=Path, default=Path("digits.png"), help="the picture")
    return parser.parse_args()


def main() -> None:
    """Train, test, report, draw."""
    began = time.perf_counter()
    options = arguments()
    Tensor.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)

    training, (images, labels) = load_digits()
    model = Convnet()
    opt = nn.optim.Adam(model.parameters(), lr=RATE)
    steps = options.epochs * (len(training[1]) // options.batch)
    progress = train(model, opt, batches(training, options.epochs, options.batch, random), steps)

    read = predict(model, images)
    right = int((read == labels).sum())
    draw(images, read, labels, options.output)
    print(f"first step     {progress.first_step:.2f} s, compilation included")
    print(f"test accuracy  {right / len(labels):.1%} ({right}/{len(labels)})")
    print(f"total          {time.perf_counter() - began:.1f} s")
    print(f"picture        {options.output.resolve()}")


if __name__ == "__main__":
    main()
