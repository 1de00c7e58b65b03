"""`treadle replay`: what two commits make of the same programs.

    record.py    the knob RECORD: every program that is made, as a text; choosing a corpus of them
    lowering.py  a corpus lowered by this checkout: texts of every stage, and counts
    compare.py   two lowerings beside each other, and results where texts differ
    command.py   the command line

The corpus is committed (tests/replay/corpus); docs/measuring.md says how to use it.
"""
