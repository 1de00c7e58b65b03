"""Search over schedules: candidates, a cost, a beam, and workers that measure and may be killed.

    moves.py     the lists of actions that are one step away from a list
    steps.py     what a step is: actions that are of use together
    nearer.py    those that bring data nearer
    cost.py      what a scheduled kernel would cost, in cycles, without compiling it
    options.py   the neighbours of a list, each with its cost
    beam.py      which lists are measured next
    sample.py    the values that some outputs should have, in float64
    trial.py     a kernel with random inputs: run, checked and timed
    worker.py    the process that compiles candidates, makes neighbours, or times
    workers.py   the processes of a search, from outside: limits, crashes
    session.py   the search of a kernel: where it begins, its budget, what was found
    journal.py   what became of every candidate, written down at once
    progress.py  the bar

Nothing here is loaded before somebody searches.
"""
