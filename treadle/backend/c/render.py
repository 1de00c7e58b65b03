"""From functions of the program stage to the text of one C module (GNU C: gcc or clang).

The same contract as the LLVM renderer: `void name(i64 *slots, i32 *map, i64 task)`. What an
operation means stands in `spell`; here are loops, memory, and vectors. A vector is a value of a
compiler's vector type, so its lanes are a power of two. The hint "nontemporal" is not followed:
gcc has no portable spelling of it, and it changes no value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from treadle.backend.base import Function
from treadle.backend.c.spell import (
    SPELLED,
    Helper,
    constant,
    dot,
    load_form,
    memory_type,
    multiply,
    operation,
    register_type,
    store_form,
)
from treadle.ir import ops
from treadle.ir.decompose import decompose
from treadle.ir.dots import dot_of
from treadle.ir.dtype import DType
from treadle.ir.matrix import matrix_of
from treadle.ir.node import Node, toposort
from treadle.ir.ops import Op

SCALARS = {
    "i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short",
    "i32": "int", "u32": "unsigned int", "i64": "long long", "u64": "unsigned long long",
    "f32": "float", "f64": "double",
}  # fmt: skip
SEVERAL = ("u16", "u32")  # numbers that may hold the bits of several elements
WIDTHS = {name: int(name[1:]) // 8 for name in SCALARS}


def render(functions: Sequence[Function]) -> str:
    """The text of a module in which each function is external under its name.

    ValueError if two functions have one name, or a node may not stand in a CPU program.
    """
    names = [function.name for function in functions]
    if len(set(names)) != len(names):
        raise ValueError(f"two functions of a module have one name: {sorted(names)}")
    module = _Module()
    bodies = [_write_function(module, function) for function in functions]
    head = ["#define INLINE static inline __attribute__((always_inline))"]
    head += [f"typedef {spelled} {name};" for name, spelled in SCALARS.items()]
    head += [
        f"typedef {name} {name}_any __attribute__((aligned(1), may_alias));" for name in SEVERAL
    ]
    return "\n".join((*head, *module.types.values(), *module.helpers.values(), *bodies, ""))


def _alignment(element: str) -> int:
    """Bytes to which vectors of this type are aligned in memory."""
    return 1 if element in SEVERAL else WIDTHS[element]


class _Module:
    """What the functions of a module share: vector types and helper functions."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.helpers: dict[str, str] = {}

    def type_(self, name: str) -> str:
        """A type, with its definition if it is one of vectors."""
        if name not in self.types and "x" in name:
            element, _, lanes = name.partition("x")
            width = WIDTHS[element] * int(lanes)
            if width & (width - 1):
                raise ValueError(f"C has no vectors of {lanes} lanes, only of powers of two")
            anywhere = f"aligned({_alignment(element)}), may_alias"
            self.types[name] = (
                f"typedef {element} {name} __attribute__((vector_size({width})));\n"
                f"typedef {name} {name}_any __attribute__(({anywhere}));"
            )
        return name

    def use(self, helper: Helper, *dtypes: DType) -> str:
        """A helper's name; it is defined, and what it needs before it."""
        for dtype in dtypes:
            self.type_(register_type(dtype))
            self.type_(memory_type(dtype))
        if helper.name not in self.helpers:
            for needed in helper.needs:
                self.use(needed)
            self.helpers[helper.name] = helper.text
        return helper.name


@cache
def _decomposed(op: Op, dtype: DType) -> tuple[str, dict[str, str], dict[str, str]]:
    """(name, types, helpers) of the function of an operation that is not spelled."""
    parameters, value = decompose(op, dtype.scalar)
    body = _Body(_Module())
    names: dict[Node, str] = {p: "abc"[n] for n, p in enumerate(parameters)}
    wide: dict[Node, Node] = {}
    for node in toposort(value):
        src = tuple([wide[s] for s in node.src])
        wide[node] = new = Node(node.op, node.dtype.vec(dtype.lanes), src, node.arg)
        if node in names:
            body.names[new] = names[node]
        elif node.op is not ops.CONST:
            body.names[new] = body.operation(new)
    result, module = wide[value], body.module
    kinds = [module.type_(register_type(p.dtype.vec(dtype.lanes))) for p in parameters]
    name = f"{op.name}_{dtype!r}"
    given = ", ".join(f"{kind} {letter}" for kind, letter in zip(kinds, "abc", strict=False))
    head = f"static {module.type_(register_type(result.dtype))} {name}({given}) {{"
    text = "\n".join((head, *body.lines, f"  return {body.names[result]};", "}"))
    return name, module.types, module.helpers | {name: text}


class _Names(dict[Node, str]):
    """The operand that each node is. Constants need no definition."""

    def __init__(self, module: _Module) -> None:
        super().__init__()
        self.module = module

    def __missing__(self, node: Node) -> str:
        lanes = node.dtype.lanes
        if node.op is ops.CONST:
            parts = [constant(node.dtype.scalar, node.value)] * lanes
        elif node.op is ops.LANES:
            parts = [constant(node.dtype.scalar, lane) for lane in range(lanes)]
        else:
            raise ValueError(f"{node!r} is used before it is defined, or outside its loop")
        of = self.module.type_(register_type(node.dtype))
        self[node] = text = parts[0] if lanes == 1 else f"(({of}){{{', '.join(parts)}}})"
        return text


class _Body:
    """A function that is being written."""

    def __init__(self, module: _Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.names = _Names(module)
        self.count = 0
        self.open: list[list[tuple[Node, str]]] = []  # of each open block: what it has hidden

    def define(self, node: Node, text: str) -> None:
        """A variable with this value, until the block ends."""
        self.count += 1
        name = f"v{self.count}"
        of = self.module.type_(register_type(node.dtype))
        self.lines.append(f"  {of} {name} = {text};")
        self.set(node, name)

    def set(self, node: Node, name: str) -> None:
        """The node is this operand until the block ends."""
        if self.open and node in self.names:
            self.open[-1].append((node, self.names[node]))
        self.names[node] = name

    def operation(self, node: Node) -> str:
        """Write a scalar operation, spelled or not; the name of its value."""
        sources = tuple([s.dtype for s in node.src])
        if node.op in SPELLED:
            name = self.module.use(operation(node.op, sources, node.dtype), *sources, node.dtype)
        else:
            name, types, helpers = _decomposed(node.op, sources[0])
            self.module.types |= types
            self.module.helpers |= helpers
        given = ", ".join([self.names[s] for s in node.src])
        self.define(node, f"{name}({given})")
        return self.names[node]

    def pointer(self, buffer: Node, offset: Node, of: str, at: str = "[0]") -> str:
        """The element at an offset, or some behind it, as an lvalue of type `of`."""
        place = f"({self.names[buffer]} + {self.names[offset]})"
        return f"(({of}_any *){place}){at}" if "x" in of or of in SEVERAL else f"{place}{at}"

    def loaded(self, dtype: DType, text: str) -> str:
        """A value as memory holds it, as variables do."""
        form = load_form(dtype)
        return text if form is None else f"{self.module.use(form, dtype, dtype.scalar)}({text})"

    def stored(self, dtype: DType, text: str) -> str:
        """A value as variables hold it, as memory does."""
        form = store_form(dtype)
        return text if form is None else f"{self.module.use(form, dtype, dtype.scalar)}({text})"

    def any_lane(self, node: Node) -> str:
        """Whether a bool, or any lane of a vector of them, is true."""
        name, lanes = self.names[node], node.dtype.lanes
        if lanes == 1:
            return name
        return "(" + " | ".join(f"{name}[{lane}]" for lane in range(lanes)) + ")"


# ---- functions -----------------------------------------------------------------------------------


def _write_function(module: _Module, function: Function) -> str:
    body = _Body(module)
    for position, param in enumerate(function.params):
        of = memory_type(param.dtype.scalar)
        slot = f"slots[map[{position}]]"
        if param.op is ops.ARG:
            body.names[param] = f"p{position}"
            body.lines.append(f"  {of} *p{position} = ({of} *){slot};")
        else:
            body.define(param, body.loaded(param.dtype, f"*({of} *)&{slot}"))
    body.lines.append(f"  i64 first_code = slots[map[{len(function.params)}]];")
    for node in function.body:
        special = _STEPS.get(node.op)
        if special is None:
            body.operation(node)
        else:
            special(body, node)
    if body.open:
        raise ValueError(f"a loop or branch of {function.name} is not closed")
    head = f"void {function.name}(i64 *slots, i32 *map, i64 task) {{"
    return "\n".join((head, *body.lines, "}"))


_STEPS: dict[Op, Callable[[_Body, Node], None]] = {}


def _step(*rows: Op) -> Callable[[Callable[[_Body, Node], None]], Callable[[_Body, Node], None]]:
    def register(function: Callable[[_Body, Node], None]) -> Callable[[_Body, Node], None]:
        _STEPS.update(dict.fromkeys(rows, function))
        return function

    return register


@_step(ops.CONST, ops.LANES, ops.ARG, ops.SCALAR, ops.VARIABLE)
def _leaf(body: _Body, node: Node) -> None:
    """Nothing to write: constants and parameters are operands."""


@_step(ops.SPECIAL)
def _special(body: _Body, node: Node) -> None:
    if node.arg[:2] != ("task", 0):
        raise ValueError(f"a CPU program has one axis of tasks and no threads, not {node.arg[:2]}")
    body.set(node, "task")


@_step(ops.DEFINE)
def _define(body: _Body, node: Node) -> None:
    _, size, scope = node.arg
    if scope != "thread" or not isinstance(size, int):
        raise ValueError(f"scratch memory on the CPU is a thread's, of constant size: {node!r}")
    body.count += 1
    name = f"m{body.count}"
    of = memory_type(node.dtype.scalar)
    body.lines.append(f"  {of} {name}[{max(1, size)}] __attribute__((aligned(64)));")
    body.set(node, name)


@_step(ops.LOOP)
def _loop(body: _Body, node: Node) -> None:
    first, stop = (body.names[s] for s in node.src)
    body.count += 1
    name = f"n{body.count}"  # i8 is a type
    body.open.append([])
    head = f"{register_type(node.dtype)} {name} = {first}; {name} < {stop}; {name} += {node.arg[1]}"
    body.lines.append(f"  for ({head}) {{")
    body.set(node, name)


@_step(ops.IF)
def _if(body: _Body, node: Node) -> None:
    body.open.append([])
    body.lines.append(f"  if ({body.names[node.src[0]]}) {{")


@_step(ops.END)
def _end(body: _Body, node: Node) -> None:
    if not body.open:
        raise ValueError("an END without a LOOP or an IF")
    body.names.update(reversed(body.open.pop()))
    body.lines.append("  }")


@_step(ops.READ)
def _read(body: _Body, node: Node) -> None:
    dtype = node.dtype
    buffer, offset, *mask = node.src
    of, element = body.module.type_(memory_type(dtype)), memory_type(dtype.scalar)
    place = body.pointer(buffer, offset, of)
    if not mask:
        body.define(node, body.loaded(dtype, place))
        return
    body.count += 1
    name = f"r{body.count}"
    body.lines.append(f"  {of} {name} = ({of}){{0}};")
    test = body.names[mask[0]]
    if dtype.lanes == 1:
        body.lines.append(f"  if ({test}) {name} = {place};")
    else:
        one = body.pointer(buffer, offset, element, "[l]")
        body.lines.append(
            f"  for (int l = 0; l < {dtype.lanes}; l++) if ({test}[l]) {name}[l] = {one};"
        )
    body.define(node, body.loaded(dtype, name))


@_step(ops.WRITE)
def _write(body: _Body, node: Node) -> None:
    buffer, offset, value, *mask = node.src
    dtype = value.dtype
    of, element = body.module.type_(memory_type(dtype)), memory_type(dtype.scalar)
    place = body.pointer(buffer, offset, of)
    stored = body.stored(dtype, body.names[value])
    if not mask:
        body.lines.append(f"  {place} = {stored};")
        return
    test = body.names[mask[0]]
    if dtype.lanes == 1:
        body.lines.append(f"  if ({test}) {place} = {stored};")
        return
    one = body.pointer(buffer, offset, element, "[l]")
    loop = f"for (int l = 0; l < {dtype.lanes}; l++) if ({test}[l]) {one} = w[l];"
    body.lines.append(f"  {{ {of} w = {stored}; {loop} }}")


@_step(ops.SPLAT)
def _splat(body: _Body, node: Node) -> None:
    one = ", ".join([body.names[node.src[0]]] * node.dtype.lanes)
    body.define(node, f"({body.module.type_(register_type(node.dtype))}){{{one}}}")


@_step(ops.PACK)
def _pack(body: _Body, node: Node) -> None:
    parts = ", ".join([body.names[s] for s in node.src])
    body.define(node, f"({body.module.type_(register_type(node.dtype))}){{{parts}}}")


@_step(ops.LANE)
def _lane(body: _Body, node: Node) -> None:
    body.define(node, f"{body.names[node.src[0]]}[{node.arg}]")


@_step(ops.FLAG)
def _flag(body: _Body, node: Node) -> None:
    """The first check that fails in a program is the one reported: 0 is exchanged for its code."""
    exchange = "__atomic_compare_exchange_n((i64 *)slots[0], &none, "
    exchange += f"first_code + {node.arg}, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)"
    body.lines.append(f"  if ({body.any_lane(node.src[0])}) {{ i64 none = 0; {exchange}; }}")


@_step(ops.INTRINSIC)
def _intrinsic(body: _Body, node: Node) -> None:
    name = node.arg[0]
    if name == "prefetch":
        buffer, offset = node.src
        place = f"{body.names[buffer]} + {body.names[offset]}"
        caches = 0 if "nontemporal" in node.arg else 3
        body.lines.append(f"  __builtin_prefetch({place}, 0, {caches});")
    elif name == "shuffle":
        a, b = (body.names[s] for s in node.src)
        size = node.src[0].dtype.lanes
        parts = [f"{a}[{n}]" if n < size else f"{b}[{n - size}]" for n in node.arg[1]]
        of = body.module.type_(register_type(node.dtype))
        body.define(node, f"({of}){{{', '.join(parts)}}}")
    elif name == "dot":
        helper = dot(dot_of(node.arg), node.dtype.lanes)
        dtypes = [s.dtype for s in node.src]
        given = ", ".join([body.names[s] for s in node.src])
        body.define(node, f"{body.module.use(helper, *dtypes)}({given})")
    elif name == "mma":
        dtypes = [s.dtype for s in node.src]
        given = ", ".join([body.names[s] for s in node.src])
        body.define(node, f"{body.module.use(multiply(matrix_of(node.arg)), *dtypes)}({given})")
    elif name in ("tile_read", "tile_write"):
        _tile(body, node)
    else:
        raise ValueError(
            f"the CPU has no intrinsic {name!r}; it has dot, mma, prefetch, shuffle, tile_read and "
            "tile_write"
        )


def _tile(body: _Body, node: Node) -> None:
    """Moves a tile row by row: its elements have 4 bytes in memory and in variables."""
    place, offset, stride, *value = (body.names[s] for s in node.src)
    rows, columns = node.arg[1:]
    body.count += 1
    tile = value[0] if value else f"r{body.count}"
    bytes_ = 4 * columns
    ends = f"(char *)&{tile} + i * {bytes_}", f"{place} + {offset} + i * {stride}"
    if not value:
        body.lines.append(f"  {body.module.type_(register_type(node.dtype))} {tile};")
    to, from_ = reversed(ends) if value else ends
    copy = f"__builtin_memcpy({to}, {from_}, {bytes_})"
    body.lines.append(f"  for (i64 i = 0; i < {rows}; i++) {copy};")
    if not value:
        body.set(node, tile)
