// The form: the question as fields, with one number to solve for.

import { element, NumberField, showError, TextField } from "./fields.js";
import { FORMS, RULES, WAYS } from "./field_specs.js";
import { format, formatUp, isNumber, valueOf } from "./numbers.js";
import * as questions from "./state.js";
import { addresses, fieldLabel, fieldSpec, findErrors, get, isText, ruledOf, set, sidesOf, unknownOf, writeQuestion } from "./state.js";
import { canRule, changeWay, closeRule, openRule } from "./ways.js";

const byId = (id) => document.getElementById(id);
const SIDES = ["mechanism", "count", "final"];
const PLACES = { visible: "count", subsample: "mechanism", final_noise: "final" }; // of numbers that belong to no text form; else the budget
const TEXT_LABELS = { mechanism: "mechanism as text", count: "law of K as text", final: "final training as text" };
const fill = (select, choices) =>
    select.append(...Object.entries(choices).map(([value, { label = choices[value] }]) => element("option", { value }, label)));

/** Formats a solved number for its field, with bounds rounded to the safe side. */
export function formatSolved({ unknown, answer }) {
    if (answer.value === null) return "infinite";
    return unknown.includes(".") ? format(answer.value, 12) : formatUp(answer.value, 6);
}

/** Formats the noise of the final training that the rule has set. */
export const formatRuled = ({ answer }) => (answer.final_value === null ? "" : format(answer.final_value, 12));

export class Form {
    /** Calls `onChange()` on every change. `getResult()` returns the last result (question and answer), or null. */
    constructor(onChange, getResult) {
        Object.assign(this, { onChange, getResult, state: null, fields: new Map() });
        this.typed = {}; // the text of a number before it became the unknown
        this.previous = { mechanism: {}, count: {}, final: {} }; // the numbers of each form before another was chosen
        for (const side of SIDES) {
            fill(byId(side), FORMS[side]);
            byId(side).addEventListener("change", () => this.#choose(side, byId(side).value));
        }
        fill(byId("way"), WAYS);
        fill(byId("final-rule"), RULES);
        byId("way").addEventListener("change", () => this.#change(() => changeWay(this.state, byId("way").value, this.#close)));
        byId("final-rule").addEventListener("change", () => this.#change(() => this.#setRule(byId("final-rule").value === "ruled")));
        byId("unknown").addEventListener("change", () => {
            this.#chooseUnknown(byId("unknown").value);
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
        const [unknown, ruled] = [unknownOf(state), ruledOf(state)];
        const result = this.getResult();
        for (const [address, field] of fields) {
            const solved = address === unknown && result?.unknown === address ? formatSolved(result) : null;
            const isOpen = (address === unknown || address === ruled) && !isText(address);
            if (!isOpen) field.show(get(state, address));
            else field.show(solved ?? (address === ruled && result ? formatRuled(result) : field.input.value.replace("?", "")), true);
        }
        const options = questions.solvable(state);
        const name = (address) => (isText(address) ? `the ? in the ${TEXT_LABELS[address.split(".")[0]]}` : fieldLabel(state, address));
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
        this.#showParts();
        for (const address of addresses(state)) {
            const [id, onChange] = [address.replace(".", "-"), (text) => this.#edit(address, text)];
            const label = TEXT_LABELS[address.split(".")[0]];
            const field = isText(address) ? new TextField(id, label, onChange) : new NumberField(id, fieldSpec(state, address), onChange);
            fields.set(address, field);
        }
        const placeOf = (address) => (address.includes(".") ? address.split(".")[0] : (PLACES[address] ?? "budget"));
        for (const place of [...SIDES, "budget"]) {
            const rows = [...fields].filter(([address]) => placeOf(address) === place).map(([, { row }]) => row);
            byId(`${place}-numbers`).replaceChildren(...rows);
        }
        this.show();
    }

    /** Shows the parts of the form that the way to tune has. */
    #showParts() {
        const { state } = this;
        const [sides, isTwoStage] = [sidesOf(state), questions.hasFinal(state)];
        byId("way").value = state.way;
        byId("way-help").textContent = WAYS[state.way].help;
        byId("trial-title").textContent = isTwoStage ? "One search trial" : "One trial";
        byId("count-title").replaceChildren("Number of trials", ...(sides.includes("count") ? [", ", element("var", {}, "K")] : []));
        byId("final-part").hidden = !isTwoStage;
        byId("count-choice").hidden = !sides.includes("count");
        byId("design-open").hidden = isTwoStage;
        byId("design").hidden ||= isTwoStage;
        byId("design-open").setAttribute("aria-expanded", String(!byId("design").hidden));
        byId("final-rule").value = state.isRuled ? "ruled" : "given";
        byId("final-rule").disabled = !state.isRuled && !canRule(state);
        for (const one of byId("count").options) one.hidden = one.disabled = isTwoStage && one.value === "one";
        for (const side of sides) {
            byId(side).value = state[side].kind;
            byId(`${side}-help`).textContent = FORMS[side][state[side].kind].help;
        }
    }

    #change(transition) {
        transition();
        this.#build();
        this.onChange();
    }

    #setRule(isRuled) {
        if (isRuled && canRule(this.state)) openRule(this.state, this.#close);
        else closeRule(this.state, this.#close);
    }

    #edit(address, text) {
        const isOpen = text.includes("?");
        if (address === "final.text" && this.state.isRuled) {
            set(this.state, address, text);
            if (!isOpen) return this.#change(() => (this.state.isRuled = false));
        } else if (isText(address) && isOpen !== get(this.state, address).includes("?")) {
            if (isOpen) this.#closeUnknown();
            set(this.state, address, text);
            if (!isOpen) this.#solveFor("epsilon");
            this.show();
        } else if (!isText(address) && text.trim() === "?" && questions.solvable(this.state).includes(address)) {
            this.#chooseUnknown(address);
        } else set(this.state, address, text);
        this.onChange();
    }

    /** Changes the kind of a form. Numbers with the same name stay, and an unknown in this form moves to the new one. */
    #choose(side, kind) {
        const old = this.state[side];
        const text = questions.writeForm(old);
        const isRuled = side === "final" && this.state.isRuled;
        if (isRuled) closeRule(this.state, this.#close);
        const hasUnknown = unknownOf(this.state).startsWith(`${side}.`);
        if (hasUnknown) this.#closeUnknown();
        this.previous[side][old.kind] = old.numbers;
        const { numbers } = FORMS[side][kind];
        const before = this.previous[side][kind] ?? {};
        const carried = Object.entries(numbers).map(([name, { start }]) => [name, old.numbers[name] ?? before[name] ?? start]);
        const chosen = kind === "text" ? { text: text ?? "geometric(mean=30, cap=100)" } : Object.fromEntries(carried);
        this.state[side] = { kind, numbers: chosen };
        if (isRuled && canRule(this.state)) openRule(this.state, this.#close);
        if (hasUnknown && !unknownOf(this.state)) this.#solveFor(carried.length ? `${side}.${carried[0][0]}` : "epsilon");
        this.#build();
        this.onChange();
    }

    #chooseUnknown(address) {
        const wasRuled = this.state.isRuled;
        this.#solveFor(address);
        if (wasRuled === this.state.isRuled) this.show();
        else this.#build();
    }

    /** Makes a number the unknown, instead of the previous one. The rule for the final training needs one in the search. */
    #solveFor(address) {
        if (unknownOf(this.state) === address) return;
        if (this.state.isRuled && !/^(mechanism|count)\./.test(address)) closeRule(this.state, this.#close);
        if (isNumber(get(this.state, address))) this.typed[address] = get(this.state, address);
        this.#closeUnknown();
        set(this.state, address, "?");
    }

    #closeUnknown() {
        const address = unknownOf(this.state);
        if (address) set(this.state, address, this.#close(address));
    }

    /** Returns the solution of an open number, or the text typed before if that is nearly equal and easier to read. */
    #close = (address) => {
        const { state } = this;
        const result = this.getResult();
        const isRuled = address === ruledOf(state);
        const isSolved = result !== null && (isRuled ? result.answer.final_value !== null : result.unknown === address);
        if (isText(address)) {
            const side = address.split(".")[0];
            const closed = isSolved && result.question[side] === writeQuestion(state)[side] ? result.answer[side] : null;
            return closed ?? get(state, address).replaceAll("?", "1");
        }
        const before = this.typed[address] ?? fieldSpec(state, address).start;
        const value = isSolved ? (isRuled ? result.answer.final_value : result.answer.value) : null;
        const keepsText = value === null || Math.abs(value / valueOf(before) - 1) < 0.005;
        return keepsText ? before : isRuled ? formatRuled(result) : formatSolved(result);
    };
}
