"""`treadle tune`: search schedules for the kernels of a script, merge and show what was found.

command.py   the words of the command line
collect.py   the process that runs the script and notes its kernels
report.py    tables
"""
