// The state of the page is the question: four texts with one `?` among them. It fits into an address.

import { BUDGET, DEFAULT, FORMS } from "./forms.js";
import { isNumber, notNumber } from "./numbers.js";

const FIELDS = ["mechanism", "count", "epsilon", "delta"];

/** A text form taken apart: its kind and the texts of its numbers; what no form fits is of kind `text`. */
function readForm(side, text) {
    if (side === "count" && text === "") return { kind: "one", numbers: {} };
    const [, kind, inside] = /^\s*(\w+)\s*\(([^(){}]*)\)\s*$/.exec(text) ?? [];
    const names = Object.keys(FORMS[side][kind]?.numbers ?? {});
    const parts = (inside ?? "").split(",").map((part) => part.split("=").map((piece) => piece.trim()));
    const numbers = Object.fromEntries(parts);
    const paired = names.length === parts.length && parts.every((part) => part.length === 2);
    const fits = names.length > 0 && paired && names.every((name) => numbers[name]);
    return fits ? { kind, numbers } : { kind: "text", numbers: { text } };
}

function writeForm({ kind, numbers }) {
    if (kind === "one") return null;
    if (kind === "text") return numbers.text.trim();
    return `${kind}(${Object.entries(numbers).map(([name, value]) => `${name}=${value.trim()}`).join(", ")})`;
}

/** The state of four texts. */
export const readQuestion = ({ mechanism, count, epsilon, delta }) => ({
    mechanism: readForm("mechanism", mechanism),
    count: readForm("count", count ?? ""),
    epsilon,
    delta,
});

/** The four texts of a state, as the server takes them. */
export const question = (state) => ({
    mechanism: writeForm(state.mechanism),
    count: writeForm(state.count),
    epsilon: state.epsilon.trim(),
    delta: state.delta.trim(),
});

/** Every number of a state by its address: `epsilon`, `delta`, `mechanism.sigma`, `count.mean`, `count.text`. */
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

/** What is said of the number at an address. */
export function about(state, address) {
    const [side, name] = address.split(".");
    return name ? FORMS[side][state[side].kind].numbers[name] : BUDGET[side];
}

const isText = (address) => address.endsWith(".text");

/** Where the `?` stands. */
export const unknownOf = (state) =>
    addresses(state).find((address) => (isText(address) ? get(state, address).includes("?") : get(state, address).trim() === "?"));

/** What can be said against a state without asking: a sentence for each address, none where all is well. */
export function faults(state) {
    const found = {};
    for (const address of addresses(state)) {
        const text = get(state, address);
        const name = address.split(".").at(-1);
        if (isText(address) && text.trim() === "") found[address] = "write a text form, such as `" + example(address) + "`";
        if (isText(address) || text.trim() === "?" || isNumber(text)) continue;
        found[address] = notNumber(name, text);
    }
    return found;
}

const example = (address) => (address === "count.text" ? "geometric(mean=30, cap=100)" : "gaussian(sigma=4)");

/** The part of an address after `#`. */
export function toFragment(state) {
    const asked = question(state);
    return FIELDS.map((field) => `${field}=${encodeURIComponent(asked[field] ?? "")}`).join("&");
}

/** The state that such a part holds, or null where it holds none. */
export function fromFragment(fragment) {
    try {
        const pairs = fragment.replace(/^#/, "").split("&").map((pair) => /^(.*?)=(.*)$/s.exec(pair).slice(1));
        const asked = Object.fromEntries(pairs.map(([field, text]) => [field, decodeURIComponent(text)]));
        const whole = pairs.length === FIELDS.length && FIELDS.every((field) => field in asked);
        const marks = FIELDS.map((field) => asked[field]).join("").split("?").length - 1;
        const read = whole && marks === 1 && asked.mechanism ? readQuestion(asked) : null;
        return read && unknownOf(read) ? read : null; // a ? beside other characters is no unknown
    } catch {
        return null; // a broken escape, or a part without =
    }
}

export const start = () => readQuestion(DEFAULT);
