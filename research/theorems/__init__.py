"""Theorems of the paper that the library itself does not use. Tests check them."""
