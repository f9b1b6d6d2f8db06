"""The sentences with which a run is given up: fixed ones, which depend on no record."""

from __future__ import annotations

MODEL = "the model has a layer that training with Opacus refuses, such as BatchNorm, which mixes the records of a batch"
PLAIN = "make_private takes a plain model and a plain optimizer of torch over parameters of that model"
PRECISION = "the parameters that are trained and their gradients must be floats of 32 or 64 bits"
DEVICE = "the model is not on the device that was declared to OpacusTrial"
SEED = "noise on this device comes from a seed of 64 bits, which must be declared to tune with seed_bits=64"
CLIP = "make_private takes one positive number as max_grad_norm"
DATASET = "make_private takes a dataset of torch with a length, or a data loader over one"
SAMPLER = "the data loader shuffles or has a sampler of its own, where Poisson samples are planned"
PLAN = "the plan of a candidate could not be found, or is not DP-SGD with at least one record expected in a batch"
AGAIN = "make_private was called more than once in a trial, where one training is planned"
NEVER = "the training function has not called make_private"
CHANGED = "the private optimizer was changed on the way: its noise, clipping, batch size, generator or accountant is not the planned one"
FOREIGN = "a step was taken on something else than the next batch of the private loader"
TWICE = "the model was run more than once for one step, by which a record may count more than once"
REORDERED = (
    "sequences were packed in another order than that of their batch, by which gradients of different records are clipped as one; sort "
    "them where they are collated, and pack them with enforce_sorted=True"
)
UNEVEN = (
    "the layers were run on different numbers of records in one step, by which Opacus takes gradients of different records for those of one"
)
PASSED_OVER = "a batch of the private loader was passed over, where each is to make one step"
UNNOISED = "the optimizer took a step without noise"
OUTSIDE = "the parameters or buffers of the model were changed by something else than private steps"
HISTORY = "the history of the accountant is not the training that was planned"
