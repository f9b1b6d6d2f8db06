"""Run private selection: draw K, run the trials, and release only the winner."""
