"""Hide the output and interrupts of a trial."""
