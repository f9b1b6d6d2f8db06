"""The experiments of the paper, run again. Nothing here is needed to use the package."""
