// The state of the form is the question: two text forms and two numbers with one `?` among them. It fits into a URL fragment.

import { BUDGET, DEFAULT, FORMS } from "./field_specs.js";
import { isNumber, notNumber } from "./numbers.js";

const FIELDS = ["mechanism", "count", "epsilon", "delta"];

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

function writeForm({ kind, numbers }) {
    if (kind === "one") return null;
    if (kind === "text") return numbers.text.trim();
    return `${kind}(${Object.entries(numbers).map(([name, value]) => `${name}=${value.trim()}`).join(", ")})`;
}

/** Converts a question, as in the API, into a state. */
export const readQuestion = ({ mechanism, count, epsilon, delta }) => ({
    mechanism: readForm("mechanism", mechanism),
    count: readForm("count", count ?? ""),
    epsilon,
    delta,
});

/** Converts a state into a question, as in the API. */
export const writeQuestion = (state) => ({
    mechanism: writeForm(state.mechanism),
    count: writeForm(state.count),
    epsilon: state.epsilon.trim(),
    delta: state.delta.trim(),
});

/** Returns the address of every number: `epsilon`, `delta`, `mechanism.sigma`, `count.mean`, `count.text`. */
export function addresses(state) {
    const of = (side) => Object.keys(state[side].numbers).map((name) => `${side}.${name}`);
    return [...of("mechanism"), ...of("count"), "epsilon", "delta"];
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
    return name ? FORMS[side][state[side].kind].numbers[name] : BUDGET[side];
}

export const isText = (address) => address.endsWith(".text");

/** Returns the address of the `?`. */
export const unknownOf = (state) =>
    addresses(state).find((address) => (isText(address) ? get(state, address).includes("?") : get(state, address).trim() === "?"));

/** Returns the errors that the page finds without the server: a message for each address with an error. */
export function findErrors(state) {
    const found = {};
    for (const address of addresses(state)) {
        const text = get(state, address);
        const name = address.split(".").at(-1);
        if (isText(address) && text.trim() === "") found[address] = `Enter a text form such as ${example(address)}.`;
        if (isText(address) || text.trim() === "?" || isNumber(text)) continue;
        found[address] = notNumber(name, text);
    }
    return found;
}

const example = (address) => (address === "count.text" ? "geometric(mean=30, cap=100)" : "gaussian(sigma=4)");

/** Returns the URL fragment of a state. */
export function toFragment(state) {
    const fields = writeQuestion(state);
    return FIELDS.map((field) => `${field}=${encodeURIComponent(fields[field] ?? "")}`).join("&");
}

/** Returns the state in a URL fragment, or null if the fragment is invalid. */
export function fromFragment(fragment) {
    try {
        const pairs = fragment.replace(/^#/, "").split("&").map((pair) => /^(.*?)=(.*)$/s.exec(pair).slice(1));
        const fields = Object.fromEntries(pairs.map(([field, text]) => [field, decodeURIComponent(text)]));
        const isComplete = pairs.length === FIELDS.length && FIELDS.every((field) => field in fields);
        const marks = FIELDS.map((field) => fields[field]).join("").split("?").length - 1;
        const state = isComplete && marks === 1 && fields.mechanism ? readQuestion(fields) : null;
        return state && unknownOf(state) ? state : null; // `1?` is not an unknown
    } catch {
        return null; // a broken escape, or a part without =
    }
}

export const defaultState = () => readQuestion(DEFAULT);
