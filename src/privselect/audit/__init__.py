"""Run the worst case through the real runner, and see whether it leaks exactly what the accountant says."""
