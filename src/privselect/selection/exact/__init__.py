"""The Exact bound: mesh, rows and score orders."""
