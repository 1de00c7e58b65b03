"""Discrete Fourier transforms of any length in operations of the library: short transforms are
matrix products, long ones are made of short ones, and the derivatives come by themselves."""
