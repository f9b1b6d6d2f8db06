"""Planning: noise, number of trials and law of K under a privacy budget."""
