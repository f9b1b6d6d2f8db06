"""The figures of the paper, drawn again with the exact bound."""
