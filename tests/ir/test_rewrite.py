"""Rules in tables, and the rewriter: each node once, deep graphs, args too."""

import pytest

from treadle.ir import index, ops
from treadle.ir.dtype import float32
from treadle.ir.node import Node
from treadle.ir.rewrite import Rules, hits, rewrite

X = Node(ops.PLACEHOLDER, float32, (), (0, (3,)))
Y = Node(ops.PLACEHOLDER, float32, (), (1, (3,)))


def table():
    rules = Rules("test")

    @rules.rule("double negation", ops.NEG, algebra="-(-x) -> x")
    def double_negation(node):
        return node.src[0].src[0] if node.src[0].op is ops.NEG else None

    @rules.rule("subtraction of a negation", ops.SUB, algebra="x - (-y) -> x + y")
    def minus_negation(node):
        a, b = node.src
        return ops.ADD(a, b.src[0]) if b.op is ops.NEG else None

    return rules


def test_rules_apply_until_none_matches():
    hits.clear()
    deep = X
    for _ in range(7):
        deep = ops.NEG(deep)
    assert rewrite([deep, ops.NEG(deep)], table()) == [ops.NEG(X), X]
    assert hits["test.double negation"] == 4


def test_a_replacement_is_rewritten_itself():
    rules = table()

    @rules.rule("sine of a sum", ops.SIN, algebra="sin(x + y) -> -(-x)")
    def made_up(node):
        return ops.NEG(ops.NEG(node.src[0].src[0])) if node.src[0].op is ops.ADD else None

    assert rewrite([ops.SIN(ops.SUB(X, ops.NEG(Y)))], rules) == [X]


def test_nothing_matches_gives_the_same_nodes():
    root = ops.MUL(ops.ADD(X, Y), X)
    assert rewrite([root], table())[0] is root


def test_a_deep_chain_is_visited_once_a_node():
    calls = 0
    rules = Rules("count")

    @rules.rule("count", ops.SIN, algebra="nothing")
    def count(node):
        nonlocal calls
        calls += 1

    deep = X
    for _ in range(20_000):
        deep = ops.SIN(deep)
    assert rewrite([deep], rules) == [deep]
    assert calls == 20_000


def test_the_memo_shares_work():
    memo = {}
    rules = table()
    root = ops.NEG(ops.NEG(X))
    rewrite([root], rules, memo)
    hits.clear()
    assert rewrite([ops.EXP(root)], rules, memo) == [ops.EXP(X)]
    assert not hits


def test_bodies_inside_args_are_rewritten():
    body = Node(ops.SINK, float32, (ops.NEG(ops.NEG(X)),))
    scan = Node(ops.SCAN, (float32,), (Y,), (body, 1, 0, 4, False))
    (new,) = rewrite([scan], table())
    assert new.arg[0].src == (X,)
    assert new.shape == ((3,),)


def test_symbolic_dimensions_inside_args_stay():
    t = index.variable("T", 1, 8)
    x = Node(ops.PLACEHOLDER, float32, (), (0, (t,)))
    assert rewrite([ops.NEG(ops.NEG(x))], table()) == [x]


def test_rules_that_go_round_are_found():
    rules = Rules("circle")

    @rules.rule("there", ops.SIN, algebra="sin -> cos")
    def there(node):
        return ops.COS(node.src[0])

    @rules.rule("back", ops.COS, algebra="cos -> sin")
    def back(node):
        return ops.SIN(node.src[0])

    with pytest.raises(RuntimeError, match="the rules of circle lead from"):
        rewrite([ops.SIN(X)], rules)

    growing = Rules("growing")

    @growing.rule("wrap", ops.EXP, algebra="exp(x) -> -exp(x)")
    def wrap(node):
        return ops.NEG(node)

    with pytest.raises(RuntimeError, match="back to it"):
        rewrite([ops.EXP(X)], growing)
