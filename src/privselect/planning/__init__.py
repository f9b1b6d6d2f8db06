"""Which noise, how many trials, which law of K."""
