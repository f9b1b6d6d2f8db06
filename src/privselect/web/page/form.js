// The form: the question as fields, with one number to solve for.

import { element, NumberField, showError, TextField } from "./fields.js";
import { FORMS } from "./field_specs.js";
import { format, formatUp, isNumber, valueOf } from "./numbers.js";
import { addresses, fieldSpec, findErrors, get, isText, set, unknownOf, writeQuestion } from "./state.js";

const byId = (id) => document.getElementById(id);
const SIDES = ["mechanism", "count"];

/** Formats a solved number for its field, with bounds rounded to the safe side. */
export function formatSolved({ unknown, answer }) {
    if (answer.value === null) return "infinite";
    return unknown.includes(".") ? format(answer.value, 12) : formatUp(answer.value, 6);
}

export class Form {
    /** Calls `onChange()` on every change. `getResult()` returns the last result (question and answer), or null. */
    constructor(onChange, getResult) {
        Object.assign(this, { onChange, getResult, state: null, fields: new Map() });
        this.typed = {}; // the text of a number before it became the unknown
        this.previous = { mechanism: {}, count: {} }; // the numbers of each form before another was chosen
        for (const side of SIDES) {
            byId(side).append(...Object.entries(FORMS[side]).map(([kind, { label }]) => element("option", { value: kind }, label)));
            byId(side).addEventListener("change", () => this.#choose(side, byId(side).value));
        }
        byId("unknown").addEventListener("change", () => {
            this.#solveFor(byId("unknown").value);
            this.show();
            onChange();
        });
    }

    /** Replaces the whole state, such as by that of a link. */
    restore(state) {
        this.state = state;
        this.#build();
        this.onChange();
    }

    /** Puts a designed law of K into the question. */
    useCount(text) {
        if (unknownOf(this.state).startsWith("count.")) this.#solveFor("epsilon");
        this.state.count = { kind: "text", numbers: { text } };
        this.#build();
        this.onChange();
        byId("count-text").focus();
    }

    /** Shows the state in the fields and in the list of unknowns. */
    show() {
        const { state, fields } = this;
        const unknown = unknownOf(state);
        const result = this.getResult();
        for (const [address, field] of fields) {
            if (address !== unknown || isText(address)) field.show(get(state, address));
            else field.show(result?.unknown === address ? formatSolved(result) : field.input.value.replace("?", ""), true);
        }
        const options = addresses(state).filter((address) => !isText(address) || address === unknown);
        const name = (address) => (isText(address) ? "the ? in the text form" : fieldSpec(state, address).label);
        const listed = [...byId("unknown").options].map(({ value }) => value);
        if (listed.join() !== options.join()) // replacing the options would close an open list
            byId("unknown").replaceChildren(...options.map((address) => element("option", { value: address }, name(address))));
        byId("unknown").value = unknown;
    }

    /** Shows errors next to their fields and returns the first one, if any. */
    validate() {
        for (const field of this.fields.values()) field.showError("");
        for (const side of SIDES) showError(byId(side), byId(`${side}-message`), "");
        const found = Object.entries(findErrors(this.state));
        for (const [address, message] of found) this.fields.get(address).showError(message);
        return found[0]?.[1];
    }

    /** Shows an error of the server next to its field. Returns whether there is such a field. */
    showApiError({ field, message }) {
        const { state, fields } = this;
        const names = [...message.matchAll(/`(\w+)`/g)].map(([, name]) => name);
        const named = addresses(state).filter((address) => names.includes(address.split(".").at(-1)));
        const open = names.length && isText(unknownOf(state)) ? [unknownOf(state)] : [];
        const inField = [...names.map((name) => `${field}.${name}`), `${field}.text`, field];
        const address = (field ? inField : [...named, ...open]).find((one) => fields.has(one));
        if (address) fields.get(address).showError(message);
        else if (SIDES.includes(field)) showError(byId(field), byId(`${field}-message`), message);
        else return false;
        return true;
    }

    #build() {
        const { state, fields } = this;
        fields.clear();
        for (const side of SIDES) {
            byId(side).value = state[side].kind;
            byId(`${side}-help`).textContent = FORMS[side][state[side].kind].help;
        }
        for (const address of addresses(state)) {
            const [id, onChange] = [address.replace(".", "-"), (text) => this.#edit(address, text)];
            const label = address.startsWith("count") ? "law of K as text" : "mechanism as text";
            const field = isText(address) ? new TextField(id, label, onChange) : new NumberField(id, fieldSpec(state, address), onChange);
            fields.set(address, field);
        }
        const rows = (belongs) => [...fields].filter(([address]) => belongs(address)).map(([, { row }]) => row);
        for (const side of SIDES) byId(`${side}-numbers`).replaceChildren(...rows((address) => address.startsWith(`${side}.`)));
        byId("budget-numbers").replaceChildren(...rows((address) => !address.includes(".")));
        this.show();
    }

    #edit(address, text) {
        const isOpen = text.includes("?");
        if (isText(address) && isOpen !== get(this.state, address).includes("?")) {
            if (isOpen) this.#closeUnknown();
            set(this.state, address, text);
            if (!isOpen) this.#solveFor("epsilon");
            this.show();
        } else if (!isText(address) && text.trim() === "?") {
            this.#solveFor(address);
            this.show();
        } else set(this.state, address, text);
        this.onChange();
    }

    /** Changes the kind of a form. Numbers with the same name stay, and an unknown in this form moves to the new one. */
    #choose(side, kind) {
        const old = this.state[side];
        const text = writeQuestion(this.state)[side];
        const hasUnknown = unknownOf(this.state).startsWith(`${side}.`);
        if (hasUnknown) this.#closeUnknown();
        this.previous[side][old.kind] = old.numbers;
        const { numbers } = FORMS[side][kind];
        const before = this.previous[side][kind] ?? {};
        const carried = Object.entries(numbers).map(([name, { start }]) => [name, old.numbers[name] ?? before[name] ?? start]);
        const chosen = kind === "text" ? { text: text ?? "geometric(mean=30, cap=100)" } : Object.fromEntries(carried);
        this.state[side] = { kind, numbers: chosen };
        if (hasUnknown && !unknownOf(this.state)) this.#solveFor(carried.length ? `${side}.${carried[0][0]}` : "epsilon");
        this.#build();
        this.onChange();
    }

    /** Makes a number the unknown, instead of the previous one. */
    #solveFor(address) {
        if (unknownOf(this.state) === address) return;
        if (isNumber(get(this.state, address))) this.typed[address] = get(this.state, address);
        this.#closeUnknown();
        set(this.state, address, "?");
    }

    /** Replaces the unknown by its solution, or by the text typed before if that is nearly equal and easier to read. */
    #closeUnknown() {
        const { state } = this;
        const address = unknownOf(state);
        if (!address) return;
        const result = this.getResult()?.unknown === address ? this.getResult() : null;
        if (isText(address)) {
            const side = address.split(".")[0];
            const closed = result?.question[side] === writeQuestion(state)[side] ? result.answer[side] : null;
            return set(state, address, closed ?? get(state, address).replaceAll("?", "1"));
        }
        const before = this.typed[address] ?? fieldSpec(state, address).start;
        const value = result?.answer.value ?? null;
        const keepsText = value === null || Math.abs(value / valueOf(before) - 1) < 0.005;
        set(state, address, keepsText ? before : formatSolved(result));
    }
}
