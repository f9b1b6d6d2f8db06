"""Privacy accounting of report noisy max, by noise distribution."""
