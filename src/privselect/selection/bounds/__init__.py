"""All other bounds on the epsilon of a selection."""
