// Changes of a question between the ways to tune: one shot, a secret search or a visible one, and a final training.

import { FORMS, DEFAULT } from "./field_specs.js";
import { isNumber, valueOf } from "./numbers.js";
import { addresses, get, hasFinal, isText, noiseOf, readQuestion, ruledOf, set, unknownOf } from "./state.js";

const SHORTER = 10; // a search trial has this many times fewer steps than the final training

/** Returns whether the rule can set the noise of the final training: there is a noise, and the search has the number to solve for. */
export function canRule(state) {
    if (!hasFinal(state)) return false;
    const hasNoise = Boolean(noiseOf(state, "final")) || get(state, "final.text")?.includes("?");
    return Boolean(hasNoise && searchUnknown(state));
}

/** Returns the number of the search to solve for: the one that is open, else the noise of a trial. */
function searchUnknown(state) {
    const unknown = unknownOf(state);
    if (unknown?.startsWith("mechanism.") || unknown?.startsWith("count.")) return unknown;
    return noiseOf(state, "mechanism") ?? addresses(state).find((address) => /^(mechanism|count)\./.test(address) && !isText(address));
}

/** Opens the noise of the final training for the rule. `close(address)` returns the text of a number that is no longer open. */
export function openRule(state, close) {
    const [search, unknown] = [searchUnknown(state), unknownOf(state)];
    if (unknown !== search) {
        if (unknown) set(state, unknown, close(unknown));
        set(state, search, "?");
    }
    if (noiseOf(state, "final")) set(state, noiseOf(state, "final"), "?");
    state.isRuled = true;
}

/** Gives the noise of the final training a number. */
export function closeRule(state, close) {
    const ruled = ruledOf(state);
    if (ruled) set(state, ruled, close(ruled));
    state.isRuled = false;
}

/** Changes the way to tune. The training whose model is released stays the same. */
export function changeWay(state, way, close) {
    const before = state.way;
    if (before === way) return;
    if (before === "one") addFinal(state, way, close);
    else if (way === "one") dropFinal(state, close);
    else state.way = way;
    if (unknownOf(state)) return;
    state.way = before; // the law of K had the open number, and there is none in a visible search
    const unknown = unknownOf(state);
    set(state, unknown, close(unknown));
    state.way = way;
    const other = searchUnknown(state);
    if (!other) closeRule(state, close);
    set(state, other ?? "epsilon", "?");
}

/** The released training becomes the final one, and a search trial has fewer steps. */
function addFinal(state, way, close) {
    const { kind, numbers } = state.mechanism;
    const unknown = unknownOf(state);
    state.final = { kind, numbers: { ...numbers } };
    state.isRuled = false;
    const steps = numbers.steps?.trim();
    if (steps && isNumber(steps)) numbers.steps = String(Math.max(1, Math.ceil(valueOf(steps) / SHORTER)));
    const isOpenInTrial = unknown.startsWith("mechanism.");
    if (isOpenInTrial && kind !== "text") state.final.numbers[unknown.split(".")[1]] = close(unknown);
    if (state.count.kind === "one") state.count = readQuestion(DEFAULT).count;
    state.way = way;
    const isOpenText = isOpenInTrial && kind === "text";
    if (isOpenText) state.isRuled = true; // both texts have a ?
    else if (["epsilon", "delta"].includes(unknown)) return;
    else if (canRule(state)) openRule(state, close);
}

/** The final training becomes the one trial of which the best is released. */
function dropFinal(state, close) {
    const unknown = unknownOf(state);
    const [side, name] = unknown.split(".");
    const isRuled = Boolean(ruledOf(state));
    if (isRuled && side !== "mechanism") closeRule(state, close);
    const numbers = { ...state.final.numbers };
    const kind = state.final.kind;
    Object.assign(state, { way: "one", mechanism: { kind, numbers }, final: null, isRuled: false });
    if (unknownOf(state)) return;
    set(state, FORMS.mechanism[kind].numbers[name] ? `mechanism.${name}` : "epsilon", "?");
}
