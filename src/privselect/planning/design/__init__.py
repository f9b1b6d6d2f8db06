"""The best law of K under a budget."""
