"""Report noisy max: release only the index of the largest noisy score. Accounting and exact sampling."""

from privselect.noisy_max.index_only_noise import Exponential, Gumbel, Noise
from privselect.noisy_max.log_concave import LogConcave
from privselect.noisy_max.noisy_max import NoisyMax

__all__ = ["Exponential", "Gumbel", "LogConcave", "Noise", "NoisyMax"]
