// Chart specifications: the data and texts of each chart, for the page, the PNG and the CSV.

import { BOUNDS, PARTS } from "./field_specs.js";
import { format, formatDown, formatUp, percentDown } from "./numbers.js";

const hasValues = (values) => values.some((value) => value !== null);
const STAGES = { ...BOUNDS, ...PARTS, exact: "search and final training" };
const lines = (names, from, labels = BOUNDS) =>
    names.filter((name) => from[name] && hasValues(from[name])).map((name) => ({ name, label: labels[name] ?? name, values: from[name] }));
/** Returns a message of the server as a sentence. */
export const asSentence = (message) => message[0].toUpperCase() + message.slice(1).replace(/[^.]$/, "$&.");
const NEGLIGIBLE = 1e-6; // a smaller probability of K = 0 is not mentioned
const largest = (values) => Math.max(0, ...values.filter((value) => value !== null));

/** Epsilon over the mean of K or the number of visible trials, by every bound and of each stage alone. */
export function meanChart(answer, { mean, mean_note: note }) {
    if (!mean) return { name: "mean", note: asSentence(note) };
    const labels = answer.final ? STAGES : BOUNDS;
    const series = lines(["exact", "final", "search", "paper", "renyi", "composition", "base"], mean, labels);
    // Composition grows much faster than the other bounds, so it does not set the range of the axis.
    const tops = series.filter((line) => line.name !== "composition").map((line) => largest(line.values));
    const top = 1.12 * Math.max(...tops, answer.cost.upper ?? 0);
    const [first, last] = [mean.x[0], mean.x.at(-1)];
    const trials = format(answer.trials.expected, 4);
    const at = answer.visible ? `With ${trials} visible trial${trials === "1" ? "" : "s"}` : `At mean ${trials}`;
    const alone = formatUp((answer.final_alone ?? answer.base)?.upper ?? null, 4);
    const [whole, part] = answer.final ? ["the epsilon of search and final training", "the final training"] : ["the exact epsilon", "one trial"];
    const [title, xLabel] = answer.visible ? ["Epsilon by number of trials", "visible trials"] : [undefined, "mean of K"];
    const ends = series.filter((line) => line.values.at(-1) !== null).map((line) => `${line.label} ${formatUp(line.values.at(-1), 3)}`);
    return {
        name: "mean", title, xLabel, yLabel: "epsilon", xs: mean.x, series, log: "x", y: [0, top || 1], curves: mean,
        marks: [{ x: answer.trials.expected, y: answer.cost.upper }],
        caption: `${at}, ${whole} is ${formatUp(answer.cost.upper, 4)}. The epsilon of ${part} alone is ${alone}.`,
        description: `Epsilon over the ${answer.visible ? "number of trials" : "mean of K"}, from ${format(first, 3)} to ${format(last, 3)}. At the right end: ${ends.join(", ")}.`,
    };
}

/** Delta over epsilon, for the selection and for one trial. The curves are functions of delta, so delta is the data's x. */
export function profileChart(answer, { profile }) {
    const labels = { ...(answer.final ? STAGES : BOUNDS), exact_lower: "lower bound" };
    const isApart = (lower, index) => lower !== null && lower < 0.98 * profile.exact[index]; // otherwise the two lines coincide
    const showsLower = profile.exact_lower.some(isApart);
    const series = lines(["exact", ...(showsLower ? ["exact_lower"] : []), "final", "base"], profile, labels);
    const top = 1.05 * Math.max(...series.map((line) => largest(line.values)));
    const ends = [0, profile.delta.length - 1].filter((index) => profile.exact[index] !== null);
    const points = ends.map((index) => `epsilon ${formatUp(profile.exact[index], 3)} at delta ${formatUp(profile.delta[index], 2)}`);
    const ring = `(${formatUp(answer.cost.upper, 4)}, ${formatUp(answer.delta, 4)})`;
    return {
        name: "profile", xLabel: "delta", yLabel: "epsilon", xs: profile.delta, series, log: "x", swapped: true, y: [0, top || 1],
        curves: profile,
        marks: [{ x: answer.delta, y: answer.cost.upper }],
        caption: `All computed points hold simultaneously; straight lines connect them. The ring marks your question: ${ring}.`,
        description: `Delta over epsilon. ${answer.final ? "Both stages together have" : "The selection has"} ${points.join(" and ")}.`,
    };
}

/** P(K >= k). */
export function survivalChart(answer) {
    const { survival, trials } = answer;
    if (answer.visible) return { name: "survival", note: describeVisible(answer) };
    if (!survival) return { name: "survival", note: "There is always one trial. " + successSentence(trials) };
    // Each value also holds since the previous k; the first one since 0.
    const xs = [0, ...survival.k];
    const curves = { survival: [1, ...survival.probability] };
    const series = lines(["survival"], curves, { survival: "P(K ≥ k)" });
    const shares = (k) => Object.keys(trials.quantiles).filter((share) => trials.quantiles[share] === k);
    const label = (k) => shares(k).map((share) => `${format(100 * share, 3)}%`).join(", ");
    const rules = [...new Set(Object.values(trials.quantiles))].map((k) => ({ x: k, label: label(k) }));
    const text = describeTrials(trials, survival);
    return {
        name: "survival", xLabel: "k", yLabel: "P(K ≥ k)", xs, series, steps: true, y: [0, 1.04], curves, rules, marks: [],
        caption: text,
        description: `The probability that K is at least k, up to k = ${survival.k.at(-1)}. ${text}`,
    };
}

function describeTrials(trials, survival) {
    const { "0.5": half, "0.9": most, "0.99": nearly } = trials.quantiles;
    const isConstant = trials.expected === nearly && survival.probability.every((one) => one === 0 || one === 1);
    const smaller = half === nearly ? "" : `${half} with probability 50%, at most ${most} with 90% and at most `;
    const last = half === nearly ? "probability 99%" : "99%";
    const size = isConstant ? `K is always ${nearly}.` : `K is at most ${smaller}${nearly} with ${last}.`;
    const zero = trials.probability_of_zero;
    const none = zero > NEGLIGIBLE ? ` With probability ${formatUp(100 * zero, 3)}%, no trial is run.` : "";
    return `${size}${none} ${successSentence(trials)}`;
}

function describeVisible({ visible, trials }) {
    const runs = visible === 1 ? "The one trial runs, and its result" : `All ${visible} trials run, and every result`;
    return `${runs} may be shown, so nothing about K is secret. If candidates are drawn independently, ${success(trials)}`;
}

const successSentence = (trials) => asSentence(success(trials));
const success = (trials) =>
    `some trial is among the best 1% of candidates with probability ${percentDown(trials.success_probability["0.01"])}.`;
