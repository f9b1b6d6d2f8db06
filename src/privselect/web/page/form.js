// The left side: the question as fields, and the one number among them that is solved for.

import { complain, element, NumberField, TextField } from "./fields.js";
import { FORMS } from "./forms.js";
import { atMost, isNumber, valueOf, written } from "./numbers.js";
import { about, addresses, faults, get, question, set, unknownOf } from "./state.js";

const at = (id) => document.getElementById(id);
const SIDES = ["mechanism", "count"];
const isText = (address) => address.endsWith(".text");

/** A solved number as it stands in its field: rounded to the safe side where it is a bound. */
export function solved({ unknown, answer }) {
    if (answer.value === null) return "infinite";
    return unknown.includes(".") ? written(answer.value, 12) : atMost(answer.value, 6);
}

export class Form {
    /** `changed()` hears of every change; `last()` is the last good answer with its question, or null. */
    constructor(changed, last) {
        Object.assign(this, { changed, last, state: null, fields: new Map() });
        this.given = {}; // what stood in a number before it was solved for
        this.kept = { mechanism: {}, count: {} }; // what stood in a form before another was chosen
        for (const side of SIDES) {
            at(side).append(...Object.entries(FORMS[side]).map(([kind, { label }]) => element("option", { value: kind }, label)));
            at(side).addEventListener("change", () => this.#choose(side, at(side).value));
        }
        at("unknown").addEventListener("change", () => {
            this.#ask(at("unknown").value);
            this.show();
            changed();
        });
    }

    /** Takes a whole state, as from an address. */
    restore(state) {
        this.state = state;
        this.#build();
        this.changed();
    }

    /** Takes a law of K that was designed. */
    use(law) {
        if (unknownOf(this.state).startsWith("count.")) this.#ask("epsilon");
        this.state.count = { kind: "text", numbers: { text: law } };
        this.#build();
        this.changed();
        at("count-text").focus();
    }

    /** Fields and the list of unknowns, as the state has them. */
    show() {
        const { state, fields } = this;
        const unknown = unknownOf(state);
        for (const [address, field] of fields) {
            if (address !== unknown || isText(address)) field.show(get(state, address));
            else field.show(this.last()?.unknown === address ? solved(this.last()) : field.input.value.replace("?", ""), true);
        }
        const options = addresses(state).filter((address) => !isText(address) || address === unknown);
        const name = (address) => (isText(address) ? "the ? of the text form" : about(state, address).label);
        const listed = [...at("unknown").options].map(({ value }) => value);
        if (listed.join() !== options.join()) // else the list may be open just now
            at("unknown").replaceChildren(...options.map((address) => element("option", { value: address }, name(address))));
        at("unknown").value = unknown;
    }

    /** Says beside each field what is wrong with it; returns the first such sentence, if any. */
    check() {
        for (const field of this.fields.values()) field.complain("");
        for (const side of SIDES) complain(at(side), at(`${side}-message`), "");
        const found = Object.entries(faults(this.state));
        for (const [address, sentence] of found) this.fields.get(address).complain(sentence);
        return found[0]?.[1];
    }

    /** Puts a refusal beside the field that it is about; false where there is none. */
    refuse({ field, message }) {
        const { state, fields } = this;
        const names = [...message.matchAll(/`(\w+)`/g)].map(([, name]) => name);
        const named = addresses(state).filter((address) => names.includes(address.split(".").at(-1)));
        const open = names.length && isText(unknownOf(state)) ? [unknownOf(state)] : [];
        const within = [...names.map((name) => `${field}.${name}`), `${field}.text`, field];
        const address = (field ? within : [...named, ...open]).find((one) => fields.has(one));
        if (address) fields.get(address).complain(message);
        else if (SIDES.includes(field)) complain(at(field), at(`${field}-message`), message);
        else return false;
        return true;
    }

    #build() {
        const { state, fields } = this;
        fields.clear();
        for (const side of SIDES) {
            at(side).value = state[side].kind;
            at(`${side}-help`).textContent = FORMS[side][state[side].kind].help;
        }
        for (const address of addresses(state)) {
            const [id, edited] = [address.replace(".", "-"), (text) => this.#edit(address, text)];
            const label = address.startsWith("count") ? "the law, as text" : "the mechanism, as text";
            fields.set(address, isText(address) ? new TextField(id, label, edited) : new NumberField(id, about(state, address), edited));
        }
        const rows = (wanted) => [...fields].filter(([address]) => wanted(address)).map(([, { row }]) => row);
        for (const side of SIDES) at(`${side}-numbers`).replaceChildren(...rows((address) => address.startsWith(`${side}.`)));
        at("budget-numbers").replaceChildren(...rows((address) => !address.includes(".")));
        this.show();
    }

    #edit(address, text) {
        const marked = text.includes("?");
        if (isText(address) && marked !== get(this.state, address).includes("?")) {
            if (marked) this.#settle();
            set(this.state, address, text);
            if (!marked) this.#ask("epsilon");
            this.show();
        } else if (!isText(address) && text.trim() === "?") {
            this.#ask(address);
            this.show();
        } else set(this.state, address, text);
        this.changed();
    }

    /** Another form: numbers of the same name stay, and what was solved for there is solved for here. */
    #choose(side, kind) {
        const old = this.state[side];
        const text = question(this.state)[side];
        const holds = unknownOf(this.state).startsWith(`${side}.`);
        if (holds) this.#settle();
        this.kept[side][old.kind] = old.numbers;
        const { numbers } = FORMS[side][kind];
        const before = this.kept[side][kind] ?? {};
        const carried = Object.entries(numbers).map(([name, { start }]) => [name, old.numbers[name] ?? before[name] ?? start]);
        const written = kind === "text" ? { text: text ?? "geometric(mean=30, cap=100)" } : Object.fromEntries(carried);
        this.state[side] = { kind, numbers: written };
        if (holds && !unknownOf(this.state)) this.#ask(carried.length ? `${side}.${carried[0][0]}` : "epsilon");
        this.#build();
        this.changed();
    }

    /** Makes a number the unknown, in place of the one that was. */
    #ask(address) {
        if (unknownOf(this.state) === address) return;
        if (isNumber(get(this.state, address))) this.given[address] = get(this.state, address);
        this.#settle();
        set(this.state, address, "?");
    }

    /** Makes the unknown a number like all others: as it was solved, or as it was given where that is as good and easier to read. */
    #settle() {
        const { state } = this;
        const address = unknownOf(state);
        if (!address) return;
        const last = this.last()?.unknown === address ? this.last() : null;
        if (isText(address)) {
            const side = address.split(".")[0];
            const closed = last?.question[side] === question(state)[side] ? last.answer[side] : null;
            return set(state, address, closed ?? get(state, address).replaceAll("?", "1"));
        }
        const before = this.given[address] ?? about(state, address).start;
        const value = last?.answer.value ?? null;
        const near = value === null || Math.abs(value / valueOf(before) - 1) < 0.005;
        set(state, address, near ? before : solved(last));
    }
}
