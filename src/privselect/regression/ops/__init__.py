"""One posterior sample (OPS): its privacy profile and its calibration."""
