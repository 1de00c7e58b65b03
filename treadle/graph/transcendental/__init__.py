"""Functions of mathematics beyond the elementary ones, each a formula over public operations."""
