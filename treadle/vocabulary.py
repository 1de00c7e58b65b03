"""Where the methods of Tensor that come from the table of public names live.

`methods.py` fills the class when treadle is imported. What stands in it, with types, is written out
in `vocabulary.pyi`, which `tools/stubs.py` makes from the same table: editors and type checkers
read that file in place of this one.
"""


class Vocabulary:
    """The public names as methods; Tensor is its one subclass."""

    __slots__ = ()
