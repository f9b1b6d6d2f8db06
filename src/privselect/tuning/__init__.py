"""Run private selection for real: draw K, run the trials, release the winner alone."""
