"""From functions of the program stage to the text of one LLVM module.

Each function becomes `void name(ptr slots, ptr map, i64 task)`: see docs/design.md, section 5. The
text names no target: `compile.py` adds it. What LLVM is left to do is little (registers for thread
scratch, inlining, instruction selection), because hoisting and common subexpressions are ours.

Operations that are not spelled become functions of the module, one per operation and type, written
from their decomposition. A function that uses few gets them inlined; one that uses many calls them,
so that a chain of a thousand sines compiles in the time of a thousand calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import gcd

from treadle.backend.base import Function
from treadle.backend.llvm import tiles
from treadle.backend.llvm.dots import dot
from treadle.backend.llvm.masks import known_lanes
from treadle.backend.llvm.spell import (
    SPELLINGS,
    alu,
    constant_of,
    load_form,
    memory_type,
    register_type,
    splatted,
    store_form,
    suffix,
    write_round,
)
from treadle.ir import ops
from treadle.ir.decompose import decompose
from treadle.ir.dots import dot_of
from treadle.ir.dtype import DType, bfloat16, index
from treadle.ir.matrix import matrix_of
from treadle.ir.node import Node, toposort
from treadle.ir.ops import Op

# Lines of decomposed operations that one function takes inline; the rest it calls. An operation of
# at most SHORT lines is always inlined.
INLINE_LINES = 400
SHORT = 6

BUFFER_ALIGNMENT = 64  # bytes; where every buffer of the engine begins


def render(functions: Sequence[Function]) -> str:
    """The text of a module in which each function is external under its name.

    ValueError if two functions have one name, or a node may not stand in a CPU program.
    """
    module = _Module()
    names = [function.name for function in functions]
    if len(set(names)) != len(names):
        raise ValueError(f"two functions of a module have one name: {sorted(names)}")
    bodies = [_write_function(module, function) for function in functions]
    return module.text(bodies)


class _Module:
    """What the functions of a module share: declarations and the functions of operations."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}

    def text(self, bodies: list[str]) -> str:
        """The module, with these functions."""
        return "\n".join(
            (
                "@treadle.zero = private constant i64 0",
                *self.declarations.values(),
                *self.helpers.values(),
                *bodies,
                "attributes #0 = { nounwind }",
                "attributes #1 = { alwaysinline nounwind }",
                "attributes #2 = { noinline }",
                "!0 = !{i32 1}",
                "",
            )
        )

    def add(self, helper: _Helper) -> None:
        """Define a function of an operation, with what it uses, unless it is defined."""
        if helper.name not in self.helpers:
            self.declarations |= helper.declarations
            self.helpers |= helper.uses
            self.helpers[helper.name] = helper.text


class _Helper:
    """A function of the module that stands for one operation on one type.

    uses: the helpers that it calls, by name; they are defined with it.
    """

    def __init__(self, name: str, body: _Body, result: str, value: str, *operands: str) -> None:
        of = ", ".join(f"{kind} %a{n}" for n, kind in enumerate(operands))
        head = f"define internal {result} @{name}({of}) #1 {{"
        self.name = name
        self.length = len(body.lines)
        self.declarations = body.module.declarations
        self.uses = body.module.helpers
        self.text = "\n".join((head, *body.lines, f"  ret {result} {value}", "}"))


@cache
def _operation(op: Op, dtype: DType) -> _Helper:
    """The function of an operation that is not spelled: its decomposition, on every lane."""
    parameters, value = decompose(op, dtype.scalar)
    body = _Body(_Module())
    names: dict[Node, str] = {p: f"%a{n}" for n, p in enumerate(parameters)}
    body.names.update(names)
    wide: dict[Node, Node] = {}
    for node in toposort(value):
        src = tuple([wide[s] for s in node.src])
        wide[node] = new = Node(node.op, node.dtype.vec(dtype.lanes), src, node.arg)
        if node in names:
            body.names[new] = names[node]
        elif node.op is not ops.CONST:
            body.names[new] = body.operation(new)
    result = wide[value]
    types = [register_type(p.dtype.vec(dtype.lanes)) for p in parameters]
    name = f"treadle.{op.name}.{dtype!r}"
    return _Helper(name, body, register_type(result.dtype), body.names[result], *types)


@cache
def _rounding(dtype: DType) -> _Helper:
    """The function that rounds a float32 to bfloat16."""
    body = _Body(_Module())
    of = register_type(dtype)
    return _Helper(f"treadle.round.{dtype!r}", body, of, write_round(body, dtype, "%a0"), of)


class _Names(dict[Node, str]):
    """The operand that each node is. Constants need no definition."""

    def __missing__(self, node: Node) -> str:
        if node.op is ops.CONST:
            text = constant_of(node)
        elif node.op is ops.LANES:
            of = register_type(node.dtype.scalar)
            text = f"<{', '.join(f'{of} {lane}' for lane in range(node.dtype.lanes))}>"
        else:
            raise ValueError(f"{node!r} is used before it is defined, or outside its loop")
        self[node] = text
        return text


class _Body:
    """A function that is being written."""

    def __init__(self, module: _Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.entry: list[str] = []  # the entry block: parameters and scratch memory
        self.names = _Names()
        self.count = 0
        self.block = "entry"  # the label of the block that is being written
        self.addresses: dict[tuple[str, str], str] = {}
        # of each open loop and branch: what closes it, and the operands that were hidden inside it
        self.open: list[tuple[Callable[[], None], list[tuple[Node, str]]]] = []
        self.inlined = 0
        self.alignment: dict[Node, int] = {}
        self.flag = ("", "")  # the address of the error flag, and this kernel's first code

    def emit(self, instruction: str) -> str:
        """Write an instruction; the name of its value."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def emit_entry(self, instruction: str) -> str:
        """Write an instruction of the entry block; the name of its value."""
        self.count += 1
        name = f"%v{self.count}"
        self.entry.append(f"  {name} = {instruction}")
        return name

    def intrinsic(self, name: str, result: str, *operands: tuple[str, str]) -> str:
        """Write a call of an LLVM intrinsic with (type, value) operands; the name of its value."""
        if name not in self.module.declarations:
            kinds = ", ".join([kind.split(" align")[0] for kind, _ in operands])
            self.module.declarations[name] = f"declare {result} @{name}({kinds})"
        given = ", ".join([f"{kind} {value}" for kind, value in operands])
        call = f"call {result} @{name}({given})"
        if result == "void":
            self.lines.append(f"  {call}")
            return ""
        return self.emit(call)

    def call_round(self, dtype: DType, value: str) -> str:
        """Write the rounding of a float32 to bfloat16; the name of its value."""
        helper = _rounding(bfloat16.vec(dtype.lanes))
        self.module.add(helper)
        of = register_type(dtype)
        return self.emit(f"call {of} @{helper.name}({of} {value})")

    def operation(self, node: Node) -> str:
        """Write a scalar operation, spelled or not; the name of its value."""
        operands = [self.names[s] for s in node.src]
        if node.op in SPELLINGS:
            return alu(self, node, operands)
        helper = _operation(node.op, node.src[0].dtype)
        self.module.add(helper)
        attributes = ""
        if helper.length > SHORT:
            if self.inlined + helper.length > INLINE_LINES:
                attributes = " #2"
            else:
                self.inlined += helper.length
        pairs = zip(node.src, operands, strict=True)
        given = ", ".join([f"{register_type(s.dtype)} {value}" for s, value in pairs])
        return self.emit(f"call {register_type(node.dtype)} @{helper.name}({given}){attributes}")

    def address(self, buffer: Node, offset: Node) -> str:
        """The address of an element; the same one within a block is computed once."""
        key = (self.names[buffer], self.names[offset])
        found = self.addresses.get(key)
        if found is None:
            place = key[1]
            if offset.dtype.bits < 64:
                word = "zext" if offset.dtype.kind == "u" else "sext"
                place = self.emit(f"{word} {register_type(offset.dtype)} {place} to i64")
            element = memory_type(buffer.dtype.scalar)
            found = self.emit(f"getelementptr {element}, ptr {key[0]}, i64 {place}")
            self.addresses[key] = found
        return found

    def start(self, label: str) -> None:
        """Begin the block `label`."""
        self.lines.append(f"{label}:")
        self.block = label

    def label(self, word: str) -> str:
        """A new label."""
        self.count += 1
        return f"{word}{self.count}"


# ---- functions -----------------------------------------------------------------------------------


def _write_function(module: _Module, function: Function) -> str:
    body = _Body(module)
    _read_parameters(body, function)
    if any(node.op is ops.WRITE and node.arg is not None for node in function.body):
        body.alignment = offset_multiples(function)
    names = body.names
    operation = body.operation
    for node in function.body:
        if node in names and body.open:
            body.open[-1][1].append((node, names[node]))
        special = _STEPS.get(node.op)
        if special is None:
            names[node] = operation(node)
        else:
            special(body, node)
    if body.open:
        raise ValueError(f"a loop or branch of {function.name} is not closed")
    head = f"define void @{function.name}(ptr %slots, ptr %map, i64 %task) #0 {{"
    return "\n".join((head, "entry:", *body.entry, *body.lines, "  ret void", "}"))


def _read_parameters(body: _Body, function: Function) -> None:
    """Parameter p is slots[map[p]]; one entry more is the slot of the first code of the checks."""

    def slot(position: int) -> str:
        entry = body.emit_entry(f"getelementptr i32, ptr %map, i64 {position}")
        number = body.emit_entry(f"load i32, ptr {entry}")
        return body.emit_entry(f"getelementptr i64, ptr %slots, i32 {number}")

    used = {source for node in function.body for source in node.src} | set(function.body)
    for position, param in enumerate(function.params):
        if param not in used:
            continue
        place = slot(position)
        if param.op is ops.ARG:
            body.names[param] = body.emit_entry(f"load ptr, ptr {place}")
            continue
        stored = body.emit_entry(f"load {memory_type(param.dtype)}, ptr {place}")
        body.names[param] = load_form(body, param.dtype, stored)
    if any(node.op is ops.FLAG for node in function.body):
        first = body.emit_entry(f"load i64, ptr {slot(len(function.params))}")
        body.flag = (body.emit_entry("load ptr, ptr %slots"), first)


def offset_multiples(function: Function) -> dict[Node, int]:
    """Of every index in a function's body, a number that always divides it (0 divides 0 alone)."""
    known: dict[Node, int] = {}

    def of(node: Node) -> int:
        return abs(int(node.value)) if node.op is ops.CONST else known.get(node, 1)

    for node in function.body:
        if node.dtype is not index:
            continue
        a = [of(source) for source in node.src]
        if node.op is ops.MUL:
            known[node] = a[0] * a[1]
        elif node.op in (ops.ADD, ops.SUB, ops.MAX, ops.MIN):
            known[node] = gcd(*a)
        elif node.op is ops.WHERE:
            known[node] = gcd(*a[1:])
        elif node.op is ops.LOOP:
            known[node] = gcd(a[0], node.arg[1])
    return known


# ---- steps that are not operations ---------------------------------------------------------------

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
    body.names[node] = "%task"


@_step(ops.DEFINE)
def _define(body: _Body, node: Node) -> None:
    _, size, scope = node.arg
    if scope != "thread" or not isinstance(size, int):
        raise ValueError(f"scratch memory on the CPU is a thread's, of constant size: {node!r}")
    kind = f"[{size} x {memory_type(node.dtype.scalar)}]"
    body.names[node] = body.emit_entry(f"alloca {kind}, align {BUFFER_ALIGNMENT}")


@_step(ops.LOOP)
def _loop(body: _Body, node: Node) -> None:
    """A loop tested at its end. One that runs once has no jumps; one that surely runs, no guard."""
    first, stop = (body.names[s] for s in node.src)
    step, of = node.arg[1], register_type(node.dtype)
    below = f"icmp {'ult' if node.dtype.kind == 'u' else 'slt'} {of}"
    outer = dict(body.addresses)
    known = [s.value for s in node.src if s.op is ops.CONST]
    distance = known[1] - known[0] if len(known) == 2 else 0
    if 0 < distance <= step:
        body.names[node] = first
        body.open.append((lambda: None, []))
        return
    start, end, leave = body.label("loop"), body.label("next"), body.label("done")
    if distance > 0:
        body.lines.append(f"  br label %{start}")
    else:
        some = body.emit(f"{below} {first}, {stop}")
        body.lines.append(f"  br i1 {some}, label %{start}, label %{leave}")
    before = body.block
    body.start(start)
    counter, following = body.label("%i"), body.label("%n")
    body.lines.append(f"  {counter} = phi {of} [ {first}, %{before} ], [ {following}, %{end} ]")
    body.names[node] = counter

    def close() -> None:
        body.lines.append(f"  br label %{end}")
        body.start(end)
        body.lines.append(f"  {following} = add {of} {counter}, {step}")
        again = body.emit(f"{below} {following}, {stop}")
        body.lines.append(f"  br i1 {again}, label %{start}, label %{leave}")
        body.start(leave)
        body.addresses = outer

    body.open.append((close, []))


@_step(ops.IF)
def _if(body: _Body, node: Node) -> None:
    yes, leave = body.label("then"), body.label("done")
    body.lines.append(f"  br i1 {body.names[node.src[0]]}, label %{yes}, label %{leave}")
    body.start(yes)
    outer = dict(body.addresses)

    def close() -> None:
        body.lines.append(f"  br label %{leave}")
        body.start(leave)
        body.addresses = outer

    body.open.append((close, []))


@_step(ops.END)
def _end(body: _Body, node: Node) -> None:
    if not body.open:
        raise ValueError("an END without a LOOP or an IF")
    close, hidden = body.open.pop()
    close()
    body.names.update(reversed(hidden))


@_step(ops.READ)
def _read(body: _Body, node: Node) -> None:
    dtype, scalar = node.dtype, node.dtype.scalar
    buffer, offset, *mask = node.src
    of, align = memory_type(dtype), min(scalar.itemsize, buffer.dtype.itemsize)
    place = body.address(buffer, offset)
    if not mask:
        stored = body.emit(f"load {of}, ptr {place}, align {align}")
    elif dtype.lanes == 1:
        # where the mask is false, a zero is read from elsewhere
        safe = body.emit(f"select i1 {body.names[mask[0]]}, ptr {place}, ptr @treadle.zero")
        stored = body.emit(f"load {of}, ptr {safe}, align {align}")
    else:
        test = (register_type(mask[0].dtype), body.names[mask[0]])
        name = f"llvm.masked.load.{suffix(of)}.p0"
        aligned = (f"ptr align {align}", place)
        stored = body.intrinsic(name, of, aligned, test, (of, "zeroinitializer"))
    body.names[node] = load_form(body, dtype, stored)


@_step(ops.WRITE)
def _write(body: _Body, node: Node) -> None:
    buffer, offset, value, *mask = node.src
    dtype, scalar = value.dtype, value.dtype.scalar
    of, align = memory_type(dtype), min(scalar.itemsize, buffer.dtype.itemsize)
    place = body.address(buffer, offset)
    stored = store_form(body, dtype, body.names[value])
    if not mask:
        hint = ""
        if node.arg == "nontemporal":
            align = _proven_alignment(body, buffer, offset, dtype)
            hint = ", !nontemporal !0" if align >= 16 else ""
        body.lines.append(f"  store {of} {stored}, ptr {place}, align {align}{hint}")
    elif dtype.lanes == 1:
        yes, leave = body.label("then"), body.label("done")
        body.lines.append(f"  br i1 {body.names[mask[0]]}, label %{yes}, label %{leave}")
        body.start(yes)
        body.lines.append(f"  store {of} {stored}, ptr {place}, align {align}")
        body.lines.append(f"  br label %{leave}")
        body.start(leave)
    else:
        _masked_store(body, (of, stored), (f"ptr align {align}", place), mask[0])


def _masked_store(body: _Body, stored: tuple[str, str], place: tuple[str, str], mask: Node) -> None:
    """The lanes of a vector that the mask selects, to memory.

    LLVM 22 merges a truncation into a masked store, and where it knows that one lane is selected
    it then writes a wide element, over its neighbour. So such a lane is stored by itself.
    """
    lanes = known_lanes(mask)
    if lanes is None or sum(lanes) != 1:
        test = (register_type(mask.dtype), body.names[mask])
        body.intrinsic(f"llvm.masked.store.{suffix(stored[0])}.p0", "void", stored, place, test)
        return
    lane = lanes.index(True)
    one = body.emit(f"extractelement {stored[0]} {stored[1]}, i64 {lane}")
    of = stored[0].rpartition(" x ")[2].rstrip(">")
    address = body.emit(f"getelementptr {of}, ptr {place[1]}, i64 {lane}")
    body.lines.append(f"  store {of} {one}, ptr {address}, {place[0].partition(' ')[2]}")


def _proven_alignment(body: _Body, buffer: Node, offset: Node, dtype: DType) -> int:
    """Bytes to which the address of a store is aligned, as far as its offset tells, at most the
    width of the vector. A store past the caches that is not aligned to 16 bytes is taken apart."""
    if buffer.op is not ops.ARG:
        return dtype.itemsize
    multiple = int(offset.value) if offset.op is ops.CONST else body.alignment.get(offset, 1)
    width = min(BUFFER_ALIGNMENT, dtype.itemsize * dtype.lanes)
    bytes_ = gcd(abs(multiple) * dtype.itemsize, width) if multiple else width
    return bytes_ & -bytes_


@_step(ops.SPLAT)
def _splat(body: _Body, node: Node) -> None:
    fixed = splatted(node)
    if fixed is not None:
        body.names[node] = constant_of(Node(ops.CONST, node.dtype, (), fixed.arg))
        return
    of, lanes = register_type(node.dtype), node.dtype.lanes
    element = register_type(node.src[0].dtype)
    one = body.emit(f"insertelement {of} poison, {element} {body.names[node.src[0]]}, i64 0")
    body.names[node] = body.emit(
        f"shufflevector {of} {one}, {of} poison, <{lanes} x i32> zeroinitializer"
    )


@_step(ops.PACK)
def _pack(body: _Body, node: Node) -> None:
    of, element = register_type(node.dtype), register_type(node.dtype.scalar)
    value = "poison"
    for lane, source in enumerate(node.src):
        value = body.emit(f"insertelement {of} {value}, {element} {body.names[source]}, i64 {lane}")
    body.names[node] = value


@_step(ops.LANE)
def _lane(body: _Body, node: Node) -> None:
    of = register_type(node.src[0].dtype)
    body.names[node] = body.emit(f"extractelement {of} {body.names[node.src[0]]}, i64 {node.arg}")


@_step(ops.FLAG)
def _flag(body: _Body, node: Node) -> None:
    """The first check that fails in a program is the one reported: 0 is exchanged for its code."""
    condition, dtype = body.names[node.src[0]], node.src[0].dtype
    if dtype.lanes > 1:
        of = register_type(dtype)
        condition = body.intrinsic(f"llvm.vector.reduce.or.{suffix(of)}", "i1", (of, condition))
    address, first = body.flag
    yes, leave = body.label("then"), body.label("done")
    body.lines.append(f"  br i1 {condition}, label %{yes}, label %{leave}")
    body.start(yes)
    code = body.emit(f"add i64 {first}, {node.arg}")
    body.emit(f"cmpxchg ptr {address}, i64 0, i64 {code} monotonic monotonic")
    body.lines.append(f"  br label %{leave}")
    body.start(leave)


@_step(ops.INTRINSIC)
def _intrinsic(body: _Body, node: Node) -> None:
    name = node.arg[0]
    if name == "prefetch":
        buffer, offset = node.src
        place = body.address(buffer, offset)
        caches = "0" if "nontemporal" in node.arg else "3"  # the first alone, or every one
        hints = (("i32", "0"), ("i32", caches), ("i32", "1"))  # to read, where to, data
        body.intrinsic("llvm.prefetch.p0", "void", ("ptr", place), *hints)
    elif name == "shuffle":
        (a, b), of = node.src, register_type(node.src[0].dtype)
        lanes = ", ".join(f"i32 {lane}" for lane in node.arg[1])
        given = f"{of} {body.names[a]}, {of} {body.names[b]}"
        mask = f"<{node.dtype.lanes} x i32> <{lanes}>"
        body.names[node] = body.emit(f"shufflevector {given}, {mask}")
    elif name == "dot":
        operands = [body.names[s] for s in node.src]
        body.names[node] = dot(body, dot_of(node.arg), node.dtype.lanes, operands)
    elif name == "mma":
        operands = [body.names[s] for s in node.src]
        body.names[node] = tiles.multiply(body, matrix_of(node.arg), operands)
    elif name in ("tile_read", "tile_write"):
        buffer, offset, stride, *value = node.src
        address, apart = body.address(buffer, offset), body.names[stride]
        if value:
            tiles.write(body, node, address, apart, body.names[value[0]])
        else:
            body.names[node] = tiles.read(body, node, address, apart)
    else:
        raise ValueError(
            f"the CPU has no intrinsic {name!r}; it has dot, mma, prefetch, shuffle, tile_read and "
            "tile_write"
        )
