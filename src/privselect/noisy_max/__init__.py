"""Report noisy max: the index of the greatest noisy score, what it leaks, and the mechanism itself."""

from privselect.noisy_max.index_only_noise import Exponential, Gumbel, Noise
from privselect.noisy_max.log_concave import LogConcave
from privselect.noisy_max.noisy_max import NoisyMax

__all__ = ["Exponential", "Gumbel", "LogConcave", "Noise", "NoisyMax"]
