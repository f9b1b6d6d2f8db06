"""Private ridge regression methods."""
