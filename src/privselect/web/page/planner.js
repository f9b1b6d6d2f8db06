// The page: the form asks a question, the server answers, and the right side shows the result.

import { ApiError, LatestRequest, NO_RESPONSE, UnreachableError } from "./api.js";
import { asSentence, meanChart, profileChart, survivalChart } from "./chart_specs.js";
import { Advice } from "./advice.js";
import { Chart } from "./charts.js";
import { Design } from "./design.js";
import { connectExportButtons } from "./export_buttons.js";
import { element } from "./fields.js";
import { BOUNDS } from "./field_specs.js";
import { Form, formatRuled, formatSolved } from "./form.js";
import { format, formatUp } from "./numbers.js";
import { darkScheme } from "./plot_style.js";
import { defaultState, fieldLabel, fieldSpec, fromFragment, readQuestion, toFragment, unknownOf, writeQuestion } from "./state.js";

const COMPUTING = "Computing.";
const UNREACHABLE = `${NO_RESPONSE} Change a value to retry.`;
const BUSY = "Server busy. Retrying.";
const LONG_SENTENCE = 90; // characters; a longer sentence gets a smaller font
const INFINITE = "There is no finite answer, so there is nothing to show.";
const CHARTS = ["mean", "profile", "survival"];

const byId = (id) => document.getElementById(id);
const say = (message) => (byId("status").textContent = message);
const mark = (name, isCurrent) =>
    (byId(name === "compare" ? "compare" : `${name}-chart`).dataset.state = isCurrent ? "current" : "stale");

let result = null; // the last question with an answer, its answer, and the details that arrived
let requested = ""; // the question that the server got last, as JSON
const isCurrent = () => result !== null && JSON.stringify(result.question) === requested;
const owners = new WeakMap(); // from a request for details to the result it belongs to

const charts = Object.fromEntries(CHARTS.map((name) => [name, new Chart(byId(`${name}-chart`))]));
const form = new Form(onChange, () => result);
const advice = new Advice({ getResult: () => result, useQuestion: (question) => form.restore(readQuestion(question)) });
const design = new Design(byId("design"), byId("design-open"), { getGoal, useCount: (text) => form.useCount(text) });

// An aborted question costs the server a process, so a running one gets some time first.
const answers = new LatestRequest("/api/answer", {
    patience: 3000,
    onAnswer: (answer, { search_start: start, ...question }) => showAnswer(answer, question, start !== null),
    onError: (error, { search_start: start, ...question }) => showFailure(error, question),
    onBusy: () => setState("computing", BUSY),
});
const curves = new LatestRequest("/api/curves", { patience: 2500, onAnswer: showCurves, onError: failCurves, onBusy: () => say(BUSY) });
const comparison = new LatestRequest("/api/compare", { patience: 2500, onAnswer: showRows, onError: failRows, onBusy: () => say(BUSY) });

// ---- requests

let timer;
function onChange() {
    byId("notice").hidden = true;
    clearTimeout(refineTimer);
    const error = form.validate();
    if (error) return setStale(error), refineSoon();
    setState("computing", COMPUTING);
    clearTimeout(timer);
    timer = setTimeout(request, 30); // a slider fires on every pixel
}

function request() {
    const question = writeQuestion(form.state);
    saveInUrlSoon();
    if (JSON.stringify(question) === requested) return isCurrent() && setCurrent();
    requested = JSON.stringify(question);
    // The server starts its search at the answer to the previous, similar question.
    const unknown = unknownOf(form.state);
    const start = unknown.includes(".") && unknown === result?.unknown ? result.answer.value : null;
    answers.send({ ...question, search_start: start });
}

// An answer is proved wherever its search started, but its last digits depend on the start. When the input stops changing,
// the page sends the question again without a start. So a question always has the same answer.
let refineTimer;
function refineSoon() {
    clearTimeout(refineTimer);
    refineTimer = setTimeout(() => {
        if (result?.isRough && (isCurrent() || !requested)) answers.send({ ...result.question, search_start: null });
    }, 400);
}

// ---- the answer

function showAnswer(answer, question, isRough) {
    const survival = survivalChart(answer);
    result = { question, answer, isRough, unknown: unknownOf(readQuestion(question)), details: { survival } };
    byId("sentence").replaceChildren(...emphasiseValue(answer));
    byId("sentence").classList.toggle("long", answer.sentence.length > LONG_SENTENCE);
    byId("proof").textContent = asSentence(answer.proof);
    byId("question-text").textContent = asText(question);
    byId("python").textContent = answer.python;
    byId("command").textContent = answer.command;
    charts.survival.show(survival);
    design.markStale();
    advice.markStale();
    form.show();
    for (const place of document.querySelectorAll(".message")) if (place.textContent === NO_RESPONSE) place.textContent = "";
    if (!isRough) requestDetails();
    if (isCurrent()) setCurrent();
    else if (!requested) refineSoon();
}

/** Marks the answer as the one to the question in the form. */
function setCurrent() {
    if (!result.isRough) return setFinal();
    setState("refining", COMPUTING);
    mark("survival", true);
    refineSoon();
}

function setFinal() {
    setState("current", "");
    for (const name of [...CHARTS, "compare"]) mark(name, name in result.details);
    announce(byId("sentence").textContent);
}

/** Splits the sentence to emphasise the solved number. */
function emphasiseValue({ sentence, value_text: text, unknown }) {
    const named = sentence.indexOf(`${unknown} ${text}`);
    const start = named < 0 ? sentence.indexOf(text) : named + unknown.length + 1;
    if (!text || start < 0) return [sentence];
    return [sentence.slice(0, start), element("strong", {}, text), sentence.slice(start + text.length)];
}

/** Returns the question as text forms, with the answer in it. */
function asText({ mechanism, count, visible, subsample, final, final_noise: finalNoise, epsilon, delta }) {
    const fill = (text) => text.replace("?", formatSolved(result));
    const trials = visible ? `${visible} visible trials` : (count ?? "one trial");
    const training = final ? [`then ${finalNoise ? final.replace("?", formatRuled(result)) : fill(final)}`] : [];
    const sample = subsample ? [`on a sample with probability ${subsample}`] : [];
    return [fill(mechanism), fill(trials), ...sample, ...training, `(${fill(epsilon)}, ${fill(delta)})`].join("  ·  ");
}

/** Returns the goal for the design of a law of K. */
function getGoal() {
    if (!result) return null;
    const { mechanism, epsilon, delta, cost, trials } = result.answer;
    return { mechanism, epsilon: epsilon ?? cost.upper, delta, mean: trials.expected };
}

// ---- details: requested one after the other, because the server computes them one by one

function requestDetails() {
    const body = { ...result.question, value: result.answer.value, final_value: result.answer.final_value };
    owners.set(body, result);
    if (body.value !== null) return curves.send(body);
    curves.cancel();
    comparison.cancel();
    showChartNote(INFINITE);
    showTableNote(INFINITE);
}

function showCurves(found, body) {
    const owner = owners.get(body);
    if (owner !== result && "mean" in result.details) return; // the new result already has its own charts
    owner.details.mean = meanChart(owner.answer, found);
    owner.details.profile = profileChart(owner.answer, found);
    charts.mean.show(owner.details.mean);
    charts.profile.show(owner.details.profile);
    markArrived(owner, ["mean", "profile"]);
    if (owner === result) comparison.send(body);
}

function showRows({ rows }, body) {
    const owner = owners.get(body);
    if (owner !== result && "compare" in result.details) return;
    // Other bounds require other values of an unknown in the mechanism or in the law of K.
    const hasRequired = owner.unknown.includes(".") && !owner.question.final;
    const state = readQuestion(owner.question);
    const label = fieldSpec(state, owner.unknown) ? fieldLabel(state, owner.unknown) : owner.answer.unknown;
    owner.details.compare = rows;
    byId("required").hidden = !hasRequired;
    byId("required").textContent = hasRequired ? `required ${label}` : "";
    byId("compare").tBodies[0].replaceChildren(...rows.map((row) => tableRow(row, hasRequired, owner.answer.value_text)));
    markArrived(owner, ["compare"]);
}

/** Returns a table row. Required values of other bounds are rounded to nearest; the exact one is as in the sentence. */
function tableRow({ name, label, epsilon, ratio, required, note }, hasRequired, valueText) {
    const formatRequired = (value) => (name === "exact" ? valueText : format(value, 4));
    const cell = (value, write = (one) => formatUp(one, 4)) => element("td", {}, value === null ? "–" : write(value));
    const head = element("th", { scope: "row" }, BOUNDS[name] ?? label, ...(note ? [element("small", {}, note)] : []));
    const cells = [cell(epsilon), cell(ratio, (one) => one.toFixed(2)), ...(hasRequired ? [cell(required, formatRequired)] : [])];
    return element("tr", { className: name }, head, ...cells);
}

function markArrived(owner, names) {
    const current = owner === result && isCurrent();
    for (const name of names) mark(name, current);
    if (current) say("");
}

/** Shows why details are missing in their place. If the server is unreachable, the old details stay. */
function failDetails(error, body, showNote) {
    if (owners.get(body) !== result) return;
    if (error instanceof ApiError) showNote(asSentence(error.message));
    else if (error instanceof UnreachableError) say(UNREACHABLE);
    else throw error;
}

function failCurves(error, body) {
    failDetails(error, body, (note) => (showChartNote(note), comparison.send(body)));
}

function failRows(error, body) {
    failDetails(error, body, showTableNote);
}

function showChartNote(note) {
    for (const name of ["mean", "profile"]) charts[name].show((result.details[name] = { name, note }));
    markArrived(result, ["mean", "profile"]);
}

function showTableNote(note) {
    result.details.compare = [];
    byId("compare").tBodies[0].replaceChildren(element("tr", {}, element("td", { colSpan: 4, className: "note" }, note)));
    markArrived(result, ["compare"]);
}

// ---- errors

function showFailure(error, question) {
    if (JSON.stringify(question) !== requested) return;
    if (error instanceof ApiError && isCurrent()) {
        result.isRough = false; // the rough answer is proved too, so it becomes the final one
        requestDetails();
        return setFinal();
    }
    if (error instanceof ApiError) return setStale(error.message, !form.showApiError(error)), refineSoon();
    setStale(error instanceof UnreachableError ? UNREACHABLE : "The answer could not be shown.", true);
    if (!(error instanceof UnreachableError)) throw error;
}

/** Keeps the last answer and marks it as stale. `showsReason` is set if no field shows the reason. */
function setStale(reason, showsReason = false) {
    clearTimeout(timer);
    requested = ""; // the next change sends a request, even for the same question
    const kept = result ? "This answer belongs to the last valid question." : "";
    if (!result) byId("sentence").textContent = "No answer yet.";
    setState("stale", showsReason || !result ? `${asSentence(reason)} ${kept}`.trim() : kept);
    announce(reason);
}

function setState(state, message) {
    byId("answer").dataset.state = state;
    say(message);
    if (state !== "current") for (const name of [...CHARTS, "compare"]) mark(name, false);
}

let announceTimer;
function announce(sentence) {
    clearTimeout(announceTimer);
    announceTimer = setTimeout(() => (byId("announcement").textContent = sentence), 900); // after the slider stopped
}

// ---- the URL

let knownFragment; // the fragment that the page wrote or read last
let urlTimer;

function saveInUrlSoon() {
    clearTimeout(urlTimer);
    urlTimer = setTimeout(saveInUrl, 150); // browsers limit the rate
}

function saveInUrl() {
    if (location.hash !== knownFragment) return; // a pasted fragment is about to be read
    history.replaceState(null, "", `#${toFragment(form.state)}`);
    knownFragment = location.hash;
}

function restore() {
    knownFragment = location.hash;
    const state = location.hash.length > 1 ? fromFragment(location.hash) : defaultState();
    requested = "";
    form.restore(state ?? defaultState());
    if (state) return;
    byId("notice").textContent = "The link is invalid. The page shows the default question.";
    byId("notice").hidden = false;
}

// ---- start

connectExportButtons(() => result, () => (saveInUrl(), location.href));
byId("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment of the URL holds the question
    byId("answer").focus();
});
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
darkScheme.addEventListener("change", () => Object.values(charts).forEach((chart) => chart.redraw()));
addEventListener("hashchange", () => location.hash !== knownFragment && restore());
restore();
