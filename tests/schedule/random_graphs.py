"""Random graphs for property tests: a few leaves, operations of every kind on what there is."""

import random

import numpy as np
from running import leaf

from treadle.graph import build as b
from treadle.ir import ops
from treadle.ir.dtype import bool_, float64, int64

SIZES = (1, 2, 3, 4)
EMPTY = 0.03  # how often a dimension has no elements


class Generator:
    """Builds one random graph. `inputs` are the arrays of its leaves, by slot."""

    def __init__(self, seed, steps=12):
        self.choose = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.inputs = []
        self.leaves = []
        self.nodes = []
        for _ in range(self.choose.randint(1, 4)):
            self.new_leaf(self.shape())
        for _ in range(self.choose.randint(2, steps)):
            self.step()

    def roots(self):
        """One to four of the nodes, later ones more often."""
        count = self.choose.randint(1, 4)
        late = self.nodes[len(self.leaves) :] or self.nodes
        return [
            self.choose.choice(late[-6:] if self.choose.random() < 0.7 else late)
            for _ in range(count)
        ]

    def assigns(self, roots):
        """Some roots take over the leaf of their shape and dtype."""
        found = {}
        for number, root in enumerate(roots):
            for slot, node in enumerate(self.leaves):
                same = node.shape == root.shape and node.dtype is root.dtype
                if same and slot not in found.values() and self.choose.random() < 0.5:
                    found[number] = slot
                    break
        return found

    def shape(self):
        rank = self.choose.randint(0, 3)
        empty = self.choose.random() < EMPTY
        sizes = (*SIZES, 0) if empty else SIZES
        return tuple(self.choose.choice(sizes) for _ in range(rank))

    def new_leaf(self, shape, dtype=float64):
        values = self.numbers.integers(-3, 4, shape)
        self.inputs.append(np.asarray(values, dtype.compute))
        node = leaf(len(self.inputs) - 1, shape, dtype)
        self.leaves.append(node)
        self.nodes.append(node)
        return node

    def step(self):
        kind = self.choose.choice(STEPS)
        x = self.choose.choice(self.nodes)
        found = kind(self, x)
        if found is not None:
            self.nodes.append(found)

    def partner(self, shape):
        """A node that broadcasts with the shape, or a new leaf of it."""
        fitting = [n for n in self.nodes if n.dtype is float64 and self.fits(n.shape, shape)]
        if fitting and self.choose.random() < 0.8:
            return self.choose.choice(fitting)
        return self.new_leaf(shape)

    def fits(self, small, shape):
        tail = shape[len(shape) - len(small) :]
        return len(small) <= len(shape) and all(s in (1, t) for s, t in zip(small, tail))


def unary(g, x):
    op = g.choose.choice((ops.NEG, ops.ABS, ops.TANH, ops.EXP))
    y = b.alu(op, x)
    return b.alu(ops.MIN, y, 50.0) if op is ops.EXP else y


def binary(g, x):
    op = g.choose.choice((ops.ADD, ops.SUB, ops.MUL, ops.MAX, ops.MIN))
    return b.alu(ops.MIN, b.alu(ops.MAX, b.alu(op, x, g.partner(x.shape)), -100.0), 100.0)


def chosen(g, x):
    y = g.partner(x.shape)
    return b.where(b.alu(ops.LT, x, y), x, b.alu(ops.MUL, y, 0.5))


def reshape(g, x):
    shapes = [
        s
        for s in ((-1,), (1, -1), (-1, 1), (2, -1), (-1, 2), (3, -1), (-1, 3, 1), (2, 2, -1))
        if _divides(x, s)
    ]
    return b.reshape(x, g.choose.choice(shapes))


def _divides(x, shape):
    return int(np.prod(x.shape)) % abs(int(np.prod(shape))) == 0


def permute(g, x):
    order = list(range(len(x.shape)))
    g.choose.shuffle(order)
    return b.permute(x, order)


def expand(g, x):
    shape = tuple(g.choose.choice(SIZES) if size == 1 else size for size in x.shape)
    return (
        b.expand(x, (*[g.choose.choice(SIZES)] * g.choose.randint(0, 1), *shape))
        if len(shape) < 4
        else None
    )


def pad(g, x):
    return b.pad(x, [(g.choose.randint(0, 2), g.choose.randint(0, 2)) for _ in x.shape])


def shrink(g, x):
    region = []
    for size in x.shape:
        start = g.choose.randint(0, max(0, size - 1))
        region.append((start, g.choose.randint(min(start + 1, size), size)))
    return b.shrink(x, region)


def flip(g, x):
    return b.flip(x, [axis for axis in range(len(x.shape)) if g.choose.random() < 0.5])


def window(g, x):
    if not x.shape or len(x.shape) > 3:
        return None
    axis = g.choose.randrange(len(x.shape))
    size, dilation = g.choose.randint(1, 3), g.choose.randint(1, 2)
    if dilation * (size - 1) + 1 > x.shape[axis]:
        return None
    return b.window(x, axis, size, g.choose.randint(1, 3), dilation)


def unwindow(g, x):
    if len(x.shape) < 2 or max(x.shape) > 8:
        return None
    axis = g.choose.randrange(len(x.shape) - 1)
    stride = g.choose.choice((1, 2, x.shape[axis + 1]))
    dilation = g.choose.choice((1, 1, 2))
    y = b.unwindow(x, axis, g.choose.randint(1, 8), stride, dilation)
    return b.reduce("add", y, axis + 1) if g.choose.random() < 0.7 else y


def reduce(g, x):
    axes = [axis for axis in range(len(x.shape)) if g.choose.random() < 0.6]
    if not axes:
        return None
    y = b.reduce(g.choose.choice(("add", "add", "max", "min")), x, axes, g.choose.random() < 0.5)
    return b.alu(ops.MUL, y, 0.25)


def argument(g, x):
    if not x.shape:
        return None
    axis = g.choose.randrange(len(x.shape))
    count = x.shape[axis]
    place = b.reshape(b.iota(count, int64), (count, *[1] * (len(x.shape) - axis - 1)))
    value, where = b.reduce(
        g.choose.choice(("argmax", "argmin")), (x, b.expand(place, x.shape)), axis
    )
    return value if g.choose.random() < 0.3 else b.cast(where, float64)


def normalise(g, x):
    if not x.shape:
        return None
    axis = g.choose.randrange(len(x.shape))
    top = b.reduce("max", x, axis, True)
    e = b.alu(ops.EXP, b.alu(ops.SUB, x, top))
    return b.alu(ops.DIV, e, b.reduce("add", e, axis, True))


def matmul(g, x):
    if len(x.shape) != 2:
        return None
    rows, inner = x.shape
    columns = g.choose.choice(SIZES)
    other = g.partner((inner, columns)) if g.choose.random() < 0.5 else g.new_leaf((inner, columns))
    if other.shape != (inner, columns):
        return None
    left = b.expand(b.reshape(x, (rows, inner, 1)), (rows, inner, columns))
    right = b.expand(b.reshape(other, (1, inner, columns)), (rows, inner, columns))
    return b.alu(ops.MUL, b.reduce("add", b.alu(ops.MUL, left, right), 1), 0.25)


def indices(g, shape, size):
    values = g.numbers.integers(0, size, shape)
    g.inputs.append(np.asarray(values))
    node = leaf(len(g.inputs) - 1, shape, int64)
    g.leaves.append(node)
    if g.choose.random() < 0.3:  # computed indices
        return b.alu(ops.SUB, size - 1, node)
    return node


def gather(g, x):
    if not x.shape or 0 in x.shape:
        return None
    axis = g.choose.randrange(len(x.shape))
    shape = (*x.shape[:axis], g.choose.choice(SIZES), *x.shape[axis + 1 :])
    return b.gather(x, indices(g, shape, x.shape[axis]), axis)


def scatter(g, x):
    if not x.shape or 0 in x.shape:
        return None
    axis = g.choose.randrange(len(x.shape))
    shape = (*x.shape[:axis], g.choose.choice(SIZES), *x.shape[axis + 1 :])
    value = b.expand(g.partner(shape), shape)
    monoid = g.choose.choice(("set", "add", "max"))
    return b.scatter(x, indices(g, shape, x.shape[axis]), value, axis, monoid)


def update(g, x):
    if not x.shape or 0 in x.shape:
        return None
    region, shape = [], []
    for size in x.shape:
        start, step = g.choose.randrange(size), g.choose.randint(1, 2)
        region.append((start, step))
        shape.append(g.choose.randint(1, (size - 1 - start) // step + 1))
    value = b.expand(g.partner(tuple(shape)), tuple(shape))
    return b.update(x, value, region)


def stored(g, x):
    return b.contiguous(x)


STEPS = (
    *[unary] * 3, *[binary] * 5, chosen, reshape, reshape, permute, expand, pad, shrink, flip,
    window, unwindow, unwindow, *[reduce] * 3, argument, normalise, matmul, matmul, gather, scatter,
    update, update, stored,
)  # fmt: skip
assert bool_
