"""Search over schedules: candidates, a cost, a beam, and workers that measure and may be killed.

    moves.py     the lists of actions that are one step away from a list
    cost.py      what a scheduled kernel would cost, in cycles, without compiling it
    beam.py      which lists are measured next
    sample.py    the values that some outputs should have, in float64
    trial.py     a kernel with random inputs: run, checked and timed
    worker.py    the process that compiles or times candidates
    workers.py   the processes of a search, from outside: limits, crashes
    session.py   the search of a kernel: journal, budget, what was found

Nothing here is loaded before somebody searches.
"""
