// The page itself: the form asks, the server answers, the right side shows.

import { Gone, Latest, Refusal, SILENT } from "./ask.js";
import { Chart } from "./charts.js";
import { Design } from "./design.js";
import { element } from "./fields.js";
import { Form, solved } from "./form.js";
import { BOUNDS } from "./forms.js";
import { darkScheme } from "./looks.js";
import { atMost, written } from "./numbers.js";
import { lawPicture, meanPicture, profilePicture, spelled } from "./pictures.js";
import { about, fromFragment, question, readQuestion, start, toFragment, unknownOf } from "./state.js";
import { offer } from "./taking.js";

const COMPUTING = "Computing.";
const AGAIN = "It is asked again with the next change.";
const BUSY = "The server is busy, asking again.";
const INFINITE = "There is no finite answer to go on with.";

const at = (id) => document.getElementById(id);
const say = (sentence) => (at("status").textContent = sentence);
const fresh = (name, yes) => (at(name === "compare" ? "compare" : `${name}-chart`).dataset.state = yes ? "fresh" : "old");

let good = null; // the last good answer, with its question and what has come of its details
let asked = ""; // the question that the server was last asked
const isCurrent = () => good !== null && JSON.stringify(good.question) === asked;
const owners = new WeakMap(); // of a question about details: the answer that it belongs to

const charts = Object.fromEntries(["mean", "profile", "law"].map((name) => [name, new Chart(at(`${name}-chart`))]));
const form = new Form(changed, () => good);
const design = new Design(at("design"), at("design-open"), { given: closed, use: (law) => form.use(law) });

// To give up on a question costs the server a process, so it is done only where waiting costs more.
const answering = new Latest("/api/answer", {
    patience: 3000,
    answered: (answer, { near, ...body }) => answered(answer, body, near !== null),
    failed: (error, { near, ...body }) => failed(error, body),
    busy: () => mark("asking", BUSY),
});
const drawing = new Latest("/api/curves", { patience: 2500, answered: drawn, failed: undrawn, busy: () => say(BUSY) });
const comparing = new Latest("/api/compare", { patience: 2500, answered: compared, failed: uncompared, busy: () => say(BUSY) });

// ---- asking

let timer;
function changed() {
    at("notice").hidden = true;
    clearTimeout(resting);
    const fault = form.check();
    if (fault) return old(fault), rest();
    mark("asking", COMPUTING);
    clearTimeout(timer);
    timer = setTimeout(ask, 30); // a slider tells of every pixel
}

function ask() {
    const body = question(form.state);
    remember();
    if (JSON.stringify(body) === asked) return isCurrent() && current();
    asked = JSON.stringify(body);
    // The answer to nearly the same question is where the server looks first, where it has to look for a number.
    const unknown = unknownOf(form.state);
    const near = unknown.includes(".") && unknown === good?.unknown ? good.answer.value : null;
    answering.ask({ ...body, near });
}

// What is found nearby is proved, but depends on where it was looked for. At rest it is asked for once more, from the beginning, so that
// a question has one answer, whichever way led to it.
let resting;
function rest() {
    clearTimeout(resting);
    resting = setTimeout(() => {
        if (good?.near && (isCurrent() || !asked)) answering.ask({ ...good.question, near: null });
    }, 400);
}

// ---- the answer

function answered(answer, body, near) {
    good = { question: body, answer, near, unknown: unknownOf(readQuestion(body)), details: { law: lawPicture(answer) } };
    at("sentence").replaceChildren(...emphasised(answer));
    at("proof").textContent = spelled(answer.proved);
    at("asked").textContent = inText(body);
    at("python").textContent = answer.python;
    at("command").textContent = answer.command;
    charts.law.show(good.details.law);
    design.age();
    form.show();
    for (const place of document.querySelectorAll(".message")) if (place.textContent === SILENT) place.textContent = ""; // it is back
    if (!near) detail();
    if (isCurrent()) current();
    else if (!asked) rest();
}

/** The answer on the screen is that to the question on the screen. */
function current() {
    if (!good.near) return fine();
    mark("near", COMPUTING);
    fresh("law", true);
    rest();
}

function fine() {
    mark("fresh", "");
    for (const name of ["mean", "profile", "law", "compare"]) fresh(name, name in good.details);
    speak(at("sentence").textContent);
}

/** The number that was solved for stands out. */
function emphasised({ sentence, shown, unknown: name }) {
    const named = sentence.indexOf(`${name} ${shown}`);
    const place = named < 0 ? sentence.indexOf(shown) : named + name.length + 1;
    if (!shown || place < 0) return [sentence];
    return [sentence.slice(0, place), element("strong", {}, shown), sentence.slice(place + shown.length)];
}

/** The question as text forms, with the answer in it. */
function inText({ mechanism, count, epsilon, delta }) {
    const filled = (text) => text.replace("?", solved(good));
    return [filled(mechanism), filled(count ?? "one trial"), `(${filled(epsilon)}, ${filled(delta)})`].join("  ·  ");
}

/** What a law of K is designed for. */
function closed() {
    if (!good) return null;
    const { mechanism, epsilon, delta, cost, trials } = good.answer;
    return { mechanism, epsilon: epsilon ?? cost.upper, delta, mean: trials.expected };
}

// ---- its details: they follow one another, as the server computes them one by one

function detail() {
    const next = { ...good.question, value: good.answer.value };
    owners.set(next, good);
    if (next.value !== null) return drawing.ask(next);
    drawing.cancel();
    comparing.cancel();
    unpictured(INFINITE);
    untabled(INFINITE);
}

function drawn(curves, body) {
    const owner = owners.get(body);
    if (owner !== good && "mean" in good.details) return; // its successor has charts of its own already
    owner.details.mean = meanPicture(owner.answer, curves);
    owner.details.profile = profilePicture(owner.answer, curves);
    charts.mean.show(owner.details.mean);
    charts.profile.show(owner.details.profile);
    arrived(owner, ["mean", "profile"]);
    if (owner === good) comparing.ask(body);
}

function compared({ rows }, body) {
    const owner = owners.get(body);
    if (owner !== good && "compare" in good.details) return;
    const open = owner.unknown.includes("."); // a number of the mechanism or of the law
    const label = about(readQuestion(owner.question), owner.unknown)?.label ?? owner.answer.unknown;
    owner.details.compare = rows;
    at("instead").hidden = !open;
    at("instead").textContent = open ? `${label} it would force` : "";
    at("compare").tBodies[0].replaceChildren(...rows.map((row) => line(row, open, owner.answer.shown)));
    arrived(owner, ["compare"]);
}

/** What others would force is shown to the nearest; our own number as the sentence says it, rounded to the safe side. */
function line({ name, label, epsilon, ratio, instead, note }, open, shown) {
    const forced = (value) => (name === "exact" ? shown : written(value, 4));
    const cell = (value, write = (one) => atMost(one, 4)) => element("td", {}, value === null ? "–" : write(value));
    const first = element("th", { scope: "row" }, BOUNDS[name] ?? label, ...(note ? [element("small", {}, note)] : []));
    const cells = [cell(epsilon), cell(ratio, (one) => one.toFixed(2)), ...(open ? [cell(instead, forced)] : [])];
    return element("tr", { className: name }, first, ...cells);
}

function arrived(owner, names) {
    const current = owner === good && isCurrent();
    for (const name of names) fresh(name, current);
    if (current) say("");
}

/** Details that did not come say why in their place; where the server is gone, they stay old. */
function missing(error, body, instead) {
    if (owners.get(body) !== good) return;
    if (error instanceof Refusal) instead(spelled(error.message));
    else if (error instanceof Gone) say(`${SILENT} ${AGAIN}`);
    else throw error;
}

function undrawn(error, body) {
    missing(error, body, (note) => (unpictured(note), comparing.ask(body)));
}

function uncompared(error, body) {
    missing(error, body, untabled);
}

function unpictured(note) {
    for (const name of ["mean", "profile"]) charts[name].show((good.details[name] = { name, note }));
    arrived(good, ["mean", "profile"]);
}

function untabled(note) {
    good.details.compare = [];
    at("compare").tBodies[0].replaceChildren(element("tr", {}, element("td", { colSpan: 4, className: "note" }, note)));
    arrived(good, ["compare"]);
}

// ---- where there is no new answer

function failed(error, body) {
    if (JSON.stringify(body) !== asked) return;
    if (error instanceof Refusal && isCurrent()) {
        good.near = false; // what was found nearby will do
        detail();
        return fine();
    }
    if (error instanceof Refusal) return old(error.message, !form.refuse(error)), rest();
    old(error instanceof Gone ? `${SILENT} ${AGAIN}` : "The answer could not be shown.", true);
    if (!(error instanceof Gone)) throw error;
}

/** The last good answer stays, and says that it is old; `apart` where no field says why. */
function old(sentence, apart = false) {
    clearTimeout(timer);
    asked = ""; // the next change asks again, even the same
    const kept = good ? "Still the answer to the last good question." : "";
    if (!good) at("sentence").textContent = "No answer yet.";
    mark("old", apart || !good ? `${spelled(sentence)} ${kept}`.trim() : kept);
    speak(sentence);
}

function mark(how, sentence) {
    at("answer").dataset.state = how;
    say(sentence);
    if (how !== "fresh") for (const name of ["mean", "profile", "law", "compare"]) fresh(name, false);
}

let speaking;
function speak(sentence) {
    clearTimeout(speaking);
    speaking = setTimeout(() => (at("spoken").textContent = sentence), 900); // once a slider has come to rest
}

// ---- the address

let known; // what the page itself has put into the address, or read from it
let remembering;

function remember() {
    clearTimeout(remembering);
    remembering = setTimeout(write, 150); // browsers allow only so many a second
}

function write() {
    if (location.hash !== known) return; // another was pasted just now, and is about to be read
    history.replaceState(null, "", `#${toFragment(form.state)}`);
    known = location.hash;
}

function restore() {
    known = location.hash;
    const read = location.hash.length > 1 ? fromFragment(location.hash) : start();
    asked = "";
    form.restore(read ?? start());
    if (read) return;
    at("notice").textContent = "The link could not be read. This is the question to begin with.";
    at("notice").hidden = false;
}

// ---- wiring

offer(() => good, () => (write(), location.href));
at("skip").addEventListener("click", (event) => {
    event.preventDefault(); // what follows # in the address is the question
    at("answer").focus();
});
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
darkScheme.addEventListener("change", () => Object.values(charts).forEach((chart) => chart.redraw()));
addEventListener("hashchange", () => location.hash !== known && restore());
restore();
