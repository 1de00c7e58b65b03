"""Linear algebra in operations of the library: a factorization is a loop that stands once in the
program, whatever the size of the matrix, and its derivative is a written formula."""
