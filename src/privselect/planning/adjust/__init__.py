"""The number of DP-SGD steps for each candidate noise level."""
