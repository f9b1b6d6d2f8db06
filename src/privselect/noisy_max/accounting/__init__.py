"""The privacy cost of report noisy max, by noise distribution."""
