// The state of the form is the question: text forms and numbers with one `?` among them. It fits into a URL fragment.
// A question of two stages may have a second `?`: the noise of the final training, if a rule sets it.

import { DEFAULT, FORMS, SINGLES } from "./field_specs.js";
import { isNumber, notNumber, valueOf } from "./numbers.js";

const FIELDS = ["mechanism", "count", "epsilon", "delta"];
const STAGE_FIELDS = ["visible", "subsample", "final", "final_noise"]; // only in questions of two stages
const ALL_RECORDS = "1";

/** Splits a text form into its kind and the texts of its numbers. Any other text has the kind `text`. */
function readForm(side, text) {
    if (side === "count" && text === "") return { kind: "one", numbers: {} };
    const [, kind, inside] = /^\s*(\w+)\s*\(([^(){}]*)\)\s*$/.exec(text) ?? [];
    const names = Object.keys(FORMS[side][kind]?.numbers ?? {});
    const parts = (inside ?? "").split(",").map((part) => part.split("=").map((piece) => piece.trim()));
    const numbers = Object.fromEntries(parts);
    const isPaired = names.length === parts.length && parts.every((part) => part.length === 2);
    const fits = names.length > 0 && isPaired && names.every((name) => numbers[name]);
    return fits ? { kind, numbers } : { kind: "text", numbers: { text } };
}

export function writeForm({ kind, numbers }) {
    if (kind === "one") return null;
    if (kind === "text") return numbers.text.trim();
    return `${kind}(${Object.entries(numbers).map(([name, value]) => `${name}=${value.trim()}`).join(", ")})`;
}

/** Converts a question, as in the API, into a state. */
export function readQuestion({ mechanism, count, visible, subsample, final, final_noise: finalNoise, epsilon, delta }) {
    const way = !final ? "one" : visible ? "visible" : "secret";
    return {
        way,
        mechanism: readForm("mechanism", mechanism),
        count: readForm("count", way === "visible" ? DEFAULT.count : (count ?? "")),
        visible: String(visible || SINGLES.visible.start),
        subsample: String(subsample || ALL_RECORDS),
        final: final ? readForm("final", final) : null,
        isRuled: Boolean(finalNoise), // whether the rule sets the noise of the final training
        final_noise: String(finalNoise || SINGLES.final_noise.start),
        epsilon: String(epsilon),
        delta: String(delta),
    };
}

/** Converts a state into a question, as in the API. */
export function writeQuestion(state) {
    const [mechanism, count] = [writeForm(state.mechanism), state.way === "visible" ? null : writeForm(state.count)];
    const [epsilon, delta] = [state.epsilon.trim(), state.delta.trim()];
    if (!hasFinal(state)) return { mechanism, count, epsilon, delta };
    const visible = state.way === "visible" ? state.visible.trim() : null;
    const subsample = valueOf(state.subsample) === 1 ? null : state.subsample.trim();
    const final_noise = state.isRuled ? state.final_noise.trim() : null;
    return { mechanism, count, visible, subsample, final: writeForm(state.final), final_noise, epsilon, delta };
}

/** Returns whether a final training follows the search. */
export const hasFinal = (state) => state.way !== "one";

/** Returns the parts of the question that are chosen from a list. */
export const sidesOf = (state) => ["mechanism", ...(state.way === "visible" ? [] : ["count"]), ...(hasFinal(state) ? ["final"] : [])];

/** Returns the address of every number: `epsilon`, `visible`, `mechanism.sigma`, `count.mean`, `count.text`, `final.steps`. */
export function addresses(state) {
    const of = (side) => Object.keys(state[side].numbers).map((name) => `${side}.${name}`);
    const trials = state.way === "visible" ? ["visible"] : of("count");
    const stages = hasFinal(state) ? ["subsample", ...of("final"), ...(state.isRuled ? ["final_noise"] : [])] : [];
    return [...of("mechanism"), ...trials, ...stages, "epsilon", "delta"];
}

export function get(state, address) {
    const [side, name] = address.split(".");
    return name ? state[side].numbers[name] : state[side];
}

export function set(state, address, value) {
    const [side, name] = address.split(".");
    if (name) state[side].numbers[name] = value;
    else state[side] = value;
}

/** Returns the label, hint, default and slider of the number at an address. */
export function fieldSpec(state, address) {
    const [side, name] = address.split(".");
    return name ? FORMS[side][state[side].kind].numbers[name] : SINGLES[side];
}

/** Returns the label of a number, with its stage if there are two. */
export function fieldLabel(state, address) {
    const stage = { mechanism: " (search)", final: " (final)" }[address.split(".")[0]];
    return `${fieldSpec(state, address).label}${hasFinal(state) && stage ? stage : ""}`;
}

/** Returns the address of the noise of a mechanism, or undefined if it has none. */
export function noiseOf(state, side) {
    const name = FORMS[side][state[side].kind].noise;
    return name && `${side}.${name}`;
}

export const isText = (address) => address.endsWith(".text");

const isOpen = (state, address) => (isText(address) ? get(state, address).includes("?") : get(state, address).trim() === "?");

/** Returns the address of the noise that the rule sets, if there is one. */
export const ruledOf = (state) =>
    hasFinal(state) && state.isRuled ? addresses(state).find((address) => address.startsWith("final.") && isOpen(state, address)) : undefined;

/** Returns the address of the `?` to solve for. */
export function unknownOf(state) {
    const ruled = ruledOf(state);
    return addresses(state).find((address) => address !== ruled && isOpen(state, address));
}

/** Returns the addresses of the numbers that can be solved for. */
export function solvable(state) {
    const fixed = ["visible", "subsample", "final_noise", ruledOf(state)];
    return addresses(state).filter((address) => !fixed.includes(address) && (!isText(address) || isOpen(state, address)));
}

/** Returns the errors that the page finds without the server: a message for each address with an error. */
export function findErrors(state) {
    const found = {};
    for (const address of addresses(state)) {
        const text = get(state, address);
        const name = address.split(".").at(-1);
        if (isText(address) && text.trim() === "") found[address] = `Enter a text form such as ${example(address)}.`;
        if (isText(address) || isNumber(text) || (text.trim() === "?" && !["visible", "subsample", "final_noise"].includes(name))) continue;
        found[address] = notNumber(name, text);
    }
    return found;
}

const example = (address) => (address === "count.text" ? "geometric(mean=30, cap=100)" : "gaussian(sigma=4)");

/** Returns the URL fragment of a state. */
export function toFragment(state) {
    const fields = writeQuestion(state);
    const names = [...FIELDS, ...STAGE_FIELDS.filter((field) => fields[field])];
    return names.map((field) => `${field}=${encodeURIComponent(fields[field] ?? "")}`).join("&");
}

/** Returns the state in a URL fragment, or null if the fragment is invalid. */
export function fromFragment(fragment) {
    try {
        const pairs = fragment.replace(/^#/, "").split("&").map((pair) => /^(.*?)=(.*)$/s.exec(pair).slice(1));
        const fields = Object.fromEntries(pairs.map(([field, text]) => [field, decodeURIComponent(text)]));
        const known = [...FIELDS, ...STAGE_FIELDS];
        const isComplete = FIELDS.every((field) => field in fields) && pairs.every(([field]) => known.includes(field));
        const isUnique = Object.keys(fields).length === pairs.length;
        if (!isComplete || !isUnique || !fields.mechanism || !fitsStages(fields)) return null;
        const state = readQuestion(fields);
        const ruled = ruledOf(state);
        const marks = Object.values(fields).join("").split("?").length - 1;
        return marks === (ruled ? 2 : 1) && unknownOf(state) ? state : null; // `1?` is not an unknown
    } catch {
        return null; // a broken escape, or a part without =
    }
}

/** Returns whether a question has no parts of a second stage, or a search and a final training. */
function fitsStages({ count, visible, subsample, final, final_noise: finalNoise }) {
    if (!final) return !visible && !subsample && !finalNoise;
    return Boolean(count) !== Boolean(visible);
}

export const defaultState = () => readQuestion(DEFAULT);
