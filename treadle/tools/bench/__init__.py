"""`treadle bench`: measure kernels, models and training steps, and keep what was measured.

    timing.py      the one place that knows how to time: alternating blocks
    statistics.py  what samples say, and whether two runs differ
    machine.py     what the machine is, and how busy
    case.py        what a case is, and the table of all; kernels.py, models.py: the cases
    child.py       one case in a process of its own
    folder.py      a run as a folder: figures as JSON, IR, schedules, sources beside them
    compare.py     two folders, or two commits
    targets.py     a kept run beside the targets
    command.py     the command line

docs/measuring.md says how to measure honestly with it.
"""
