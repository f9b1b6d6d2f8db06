"""The Exact bound: mesh, rows, score orders and the accountant."""
