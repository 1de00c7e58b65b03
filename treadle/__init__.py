"""treadle: a deep-learning library whose whole path to machine code can be read."""
