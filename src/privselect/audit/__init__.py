"""Run the worst case through the real runner and compare what it leaks with the exact bound."""
