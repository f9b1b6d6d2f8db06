// The mechanisms, laws of K and numbers that the form offers, with their labels, hints and sliders.

const log = (low, high, more = {}) => ({ scale: "log", low, high, digits: 3, ...more });
const linear = (low, high, more = {}) => ({ scale: "linear", low, high, digits: 3, ...more });
const integer = (low, high) => log(low, high, { integer: true });

const mean = (low) => ({ label: "mean of K", help: "average number of trials", start: "30", slider: log(low, 1e4) });
const delta = { label: "delta", help: "", start: "1e-5", slider: log(1e-12, 1e-2, { digits: 2 }) };

// Numbers that belong to no text form.
export const SINGLES = {
    epsilon: { label: "epsilon", help: "of everything that is released", start: "1", slider: log(0.05, 20) },
    delta: { ...delta, help: "less than 1 / records" },
    visible: { label: "trials", help: "fixed in advance, all results are seen", start: "6", slider: integer(1, 100) },
    subsample: { label: "sample for the search", help: "probability of each record; 1 is all records", start: "1", slider: log(0.01, 1) },
    final_noise: { label: "times the noise alone", help: "relative to no search at all", start: "1.07", slider: log(1.01, 3) },
};

export const WAYS = {
    one: { label: "one shot", help: "Run K secret trials and release the best one." },
    secret: { label: "search, then train", help: "Run K cheap secret trials, then train once with the best candidate." },
    visible: {
        label: "visible search, then train",
        help: "Run a fixed number of cheap trials and look at every result, then train once.",
    },
};

export const RULES = { ruled: "from the budget", given: "as given below" };

export const MECHANISMS = {
    dpsgd: {
        label: "DP-SGD",
        noise: "noise_multiplier",
        help: "Training with clipped gradients, Poisson sampling and Gaussian noise.",
        numbers: {
            noise_multiplier: { label: "noise multiplier", help: "noise / clipping norm", start: "2.8", slider: log(0.3, 60) },
            sampling_probability: { label: "sampling probability", help: "batch size / records", start: "1024/60000", slider: log(1e-4, 1) },
            steps: { label: "steps", help: "per training run", start: "600", slider: integer(1, 1e5) },
        },
    },
    gaussian: {
        label: "Gaussian noise",
        noise: "sigma",
        help: "One release with Gaussian noise, for sensitivity 1.",
        numbers: { sigma: { label: "sigma", help: "standard deviation", start: "4", slider: log(0.3, 100) } },
    },
    laplace: {
        label: "Laplace noise",
        noise: "scale",
        help: "One release with Laplace noise, for sensitivity 1.",
        numbers: { scale: { label: "scale", help: "of the noise", start: "4", slider: log(0.2, 100) } },
    },
    approximate: {
        label: "(epsilon, delta)-DP",
        help: "Each trial is (epsilon, delta)-DP, and nothing else is known.",
        numbers: {
            epsilon: { label: "epsilon of a trial", help: "", start: "0.3", slider: log(0.01, 10) },
            delta: { ...delta, label: "delta of a trial", start: "1e-8" },
        },
    },
    text: { label: "text form", help: "For example composed(gaussian(sigma=4), times=10). Write ? for the number to solve for.", numbers: {} },
};

export const COUNTS = {
    geometric: { label: "geometric", help: "Stop after each trial with the same probability.", numbers: { mean: mean(1) } },
    poisson: { label: "Poisson", help: "K can be 0; then nothing is released.", numbers: { mean: mean(0.1) } },
    negative_binomial: {
        label: "negative binomial",
        help: "eta = 1 is geometric; a smaller eta has a longer tail.",
        numbers: { eta: { label: "eta", help: "shape, above -1", start: "0.5", slider: linear(-0.95, 5) }, mean: mean(1) },
    },
    binomial: {
        label: "binomial",
        help: "Up to n trials, each with probability p.",
        numbers: {
            n: { label: "n", help: "largest K", start: "60", slider: integer(1, 1e4) },
            p: { label: "p", help: "probability of each trial", start: "0.5", slider: linear(0.005, 1) },
        },
    },
    fixed: {
        label: "fixed",
        help: "Always the same number of trials.",
        numbers: { k: { label: "k", help: "trials", start: "8", slider: integer(1, 1000) } },
    },
    one: { label: "one trial, no selection", help: "The result of a single trial is released.", numbers: {} },
    text: { label: "text form", help: "For example geometric(mean=30, cap=100). Write ? for the number to solve for.", numbers: {} },
};

export const FORMS = { mechanism: MECHANISMS, count: COUNTS, final: MECHANISMS };

export const DEFAULT = {
    mechanism: "dpsgd(noise_multiplier=?, sampling_probability=1024/60000, steps=600)",
    count: "geometric(mean=30)",
    epsilon: "1",
    delta: "1e-5",
};

// The same names, colours and dashes as in all plots of the project.
export const BOUNDS = { exact: "exact", paper: "paper", renyi: "Rényi", composition: "composition", base: "one trial alone" };
export const PARTS = { search: "search alone", final: "final training alone" };
