// What can be asked about: mechanisms, laws of K and their numbers, with the words and the sliders for each.

const log = (low, high, more = {}) => ({ scale: "log", low, high, digits: 3, ...more });
const linear = (low, high, more = {}) => ({ scale: "linear", low, high, digits: 3, ...more });
const whole = (low, high) => log(low, high, { whole: true });

const mean = (least) => ({ label: "mean of K", help: "trials, on average", start: "30", slider: log(least, 1e4) });
const delta = { label: "delta", help: "", start: "1e-5", slider: log(1e-12, 1e-2, { digits: 2 }) };

export const BUDGET = {
    epsilon: { label: "epsilon", help: "for all that is released", start: "1", slider: log(0.05, 20) },
    delta: { ...delta, help: "below 1 / records" },
};

export const MECHANISMS = {
    dpsgd: {
        label: "DP-SGD",
        help: "Training with clipped gradients, Poisson sampling and Gaussian noise.",
        numbers: {
            noise_multiplier: { label: "noise multiplier", help: "noise over clipping norm", start: "2.8", slider: log(0.3, 60) },
            sampling_probability: { label: "sampling probability", help: "batch over records", start: "1024/60000", slider: log(1e-4, 1) },
            steps: { label: "steps", help: "of one training", start: "600", slider: whole(1, 1e5) },
        },
    },
    gaussian: {
        label: "Gaussian noise",
        help: "One release with Gaussian noise, on a sensitivity of 1.",
        numbers: { sigma: { label: "sigma", help: "standard deviation", start: "4", slider: log(0.3, 100) } },
    },
    laplace: {
        label: "Laplace noise",
        help: "One release with Laplace noise, on a sensitivity of 1.",
        numbers: { scale: { label: "scale", help: "of the noise", start: "4", slider: log(0.2, 100) } },
    },
    approximate: {
        label: "one guarantee",
        help: "All that is known of a trial is one (epsilon, delta).",
        numbers: {
            epsilon: { label: "epsilon of a trial", help: "", start: "0.3", slider: log(0.01, 10) },
            delta: { ...delta, label: "delta of a trial", start: "1e-8" },
        },
    },
    text: { label: "any text form", help: "Written out, such as composed(gaussian(sigma=4), times=10). A ? is solved for.", numbers: {} },
};

export const COUNTS = {
    geometric: { label: "geometric", help: "Stop after each trial with the same chance.", numbers: { mean: mean(1) } },
    poisson: { label: "Poisson", help: "May be zero: then nothing is released.", numbers: { mean: mean(0.1) } },
    negative_binomial: {
        label: "negative binomial",
        help: "A family: eta = 1 is the geometric law, less has a longer tail.",
        numbers: { eta: { label: "eta", help: "shape, above -1", start: "0.5", slider: linear(-0.95, 5) }, mean: mean(1) },
    },
    binomial: {
        label: "binomial",
        help: "So many places, each taken by chance.",
        numbers: {
            n: { label: "n", help: "most trials", start: "60", slider: whole(1, 1e4) },
            p: { label: "p", help: "chance of each", start: "0.5", slider: linear(0.005, 1) },
        },
    },
    fixed: {
        label: "fixed",
        help: "Always the same number of trials.",
        numbers: { k: { label: "k", help: "trials", start: "8", slider: whole(1, 1000) } },
    },
    one: { label: "one trial, no selection", help: "Nothing is tuned.", numbers: {} },
    text: { label: "any text form", help: "Written out, such as geometric(mean=30, cap=100). A ? is solved for.", numbers: {} },
};

export const FORMS = { mechanism: MECHANISMS, count: COUNTS };

export const DEFAULT = {
    mechanism: "dpsgd(noise_multiplier=?, sampling_probability=1024/60000, steps=600)",
    count: "geometric(mean=30)",
    epsilon: "1",
    delta: "1e-5",
};

// The other ways to account, as everywhere in the project: one name, one colour, one dash.
export const BOUNDS = { exact: "exact", paper: "paper", renyi: "Rényi", composition: "composition", base: "one trial alone" };
