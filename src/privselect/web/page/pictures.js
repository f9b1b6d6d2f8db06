// What each chart shows, as data: the same picture is drawn on the page, into the PNG and into the CSV.

import { BOUNDS } from "./forms.js";
import { atLeast, atMost, percent, written } from "./numbers.js";

const some = (values) => values.some((value) => value !== null);
const lines = (names, from, labels = BOUNDS) =>
    names.filter((name) => from[name] && some(from[name])).map((name) => ({ name, label: labels[name] ?? name, values: from[name] }));
/** A message of the server as a sentence of its own. */
export const spelled = (message) => message[0].toUpperCase() + message.slice(1).replace(/[^.]$/, "$&.");
const UNNOTICED = 1e-6; // a chance that nobody would ever see come true
const greatest = (values) => Math.max(0, ...values.filter((value) => value !== null));

/** Epsilon over the mean of K, by every bound. */
export function meanPicture(answer, { mean, mean_note: note }) {
    if (!mean) return { name: "mean", note: spelled(note) };
    const series = lines(["exact", "paper", "renyi", "composition", "base"], mean);
    // Composition grows out of sight; the frame is for what there is to choose from.
    const near = series.filter((line) => line.name !== "composition").map((line) => greatest(line.values));
    const top = 1.12 * Math.max(...near, answer.cost.upper ?? 0);
    const [first, last] = [mean.x[0], mean.x.at(-1)];
    const at = `At a mean of ${written(answer.trials.expected, 4)}`;
    const alone = atMost(answer.base?.upper ?? null, 4);
    const end = series.filter((line) => line.values.at(-1) !== null).map((line) => `${line.label} ${atMost(line.values.at(-1), 3)}`);
    return {
        name: "mean", across: "mean of K", along: "epsilon", xs: mean.x, series, log: "x", y: [0, top || 1], curves: mean,
        marks: [{ x: answer.trials.expected, y: answer.cost.upper }],
        caption: `${at} the exact epsilon is ${atMost(answer.cost.upper, 4)}; one trial alone has ${alone}.`,
        said: `Epsilon over the mean of K, from ${written(first, 3)} to ${written(last, 3)}. At the right end: ${end.join(", ")}.`,
    };
}

/** Delta over epsilon, for the selection and for one trial; the curves are given along delta, so delta is the axis of the data. */
export function profilePicture(answer, { profile }) {
    const labels = { ...BOUNDS, exact_lower: "proved from below" };
    const apart = (lower, place) => lower !== null && lower < 0.98 * profile.exact[place]; // else the two are one line
    const gap = profile.exact_lower.some(apart);
    const series = lines(["exact", ...(gap ? ["exact_lower"] : []), "base"], profile, labels);
    const top = 1.05 * Math.max(...series.map((line) => greatest(line.values)));
    const ends = [0, profile.delta.length - 1].filter((place) => profile.exact[place] !== null);
    const said = ends.map((place) => `epsilon ${atMost(profile.exact[place], 3)} at delta ${atMost(profile.delta[place], 2)}`);
    const ring = `(${atMost(answer.cost.upper, 4)}, ${atMost(answer.delta, 4)})`;
    return {
        name: "profile", across: "delta", along: "epsilon", xs: profile.delta, series, log: "x", upright: true, y: [0, top || 1],
        curves: profile,
        marks: [{ x: answer.delta, y: answer.cost.upper }],
        caption: `The computed points hold together; the line is drawn straight between them. The ring is the one asked for: ${ring}.`,
        said: `Delta over epsilon. The selection has ${said.join(" and ")}.`,
    };
}

/** The chance of so many trials or more. */
export function lawPicture(answer) {
    const { law, trials } = answer;
    if (!law) return { name: "law", note: "One trial, always. " + chance(trials) };
    // Each value holds from the place before it; that the first one holds from 0 on is drawn too.
    const xs = [0, ...law.k];
    const curves = { at_least: [1, ...law.at_least] };
    const series = lines(["at_least"], curves, { at_least: "P(K ≥ k)" });
    const shares = (k) => Object.keys(trials.quantiles).filter((share) => trials.quantiles[share] === k);
    const label = (k) => shares(k).map((share) => `${written(100 * share, 3)}%`).join(", ");
    const rules = [...new Set(Object.values(trials.quantiles))].map((k) => ({ x: k, label: label(k) }));
    return {
        name: "law", across: "k", along: "P(K ≥ k)", xs, series, steps: true, y: [0, 1.04], curves, rules, marks: [],
        caption: inWords(trials, law),
        said: `The chance that K is at least k, up to k = ${law.k.at(-1)}. ${inWords(trials, law)}`,
    };
}

function inWords(trials, law) {
    const { "0.5": half, "0.9": most, "0.99": nearly } = trials.quantiles;
    const always = trials.expected === nearly && law.at_least.every((share) => share === 0 || share === 1);
    const lesser = half === nearly ? "" : `${half} half of the time, at most ${most} with 90%, at most `;
    const few = always ? `K is always ${nearly}.` : `K is at most ${lesser}${nearly} with 99%.`;
    const none = trials.probability_of_zero > UNNOTICED ? ` With ${atMost(100 * trials.probability_of_zero, 3)}% there is no trial at all.` : "";
    return few + none + " " + chance(trials);
}

const chance = (trials) => `Some trial is among the best 1% of all candidates with ${percent(trials.chance_of_best["0.01"])}.`;
