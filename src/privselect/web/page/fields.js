// One number on the page: a text, a slider and a place for a message, tied together.

import { atNotch, NOTCHES, notchOf, valueOf } from "./numbers.js";

/** An element with properties and children. */
export function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (name in made && !name.includes("-")) made[name] = value;
        else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
}

/** A sentence beside a control; an empty one takes it away. */
export function complain(control, place, sentence) {
    place.textContent = sentence;
    if (sentence) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
    if (sentence && document.activeElement === control) place.scrollIntoView({ block: "nearest" });
}

export class NumberField {
    /** `changed(text)` is called with every change, by hand or by slider. */
    constructor(id, { label, help, slider }, changed) {
        this.slider = slider;
        this.input = element("input", { id, type: "text", inputMode: "text", "aria-describedby": `${id}-help ${id}-message` });
        const scale = { type: "range", min: 0, max: NOTCHES, step: 1 };
        this.range = element("input", { id: `${id}-slider`, ...scale, "aria-label": `${label}, slider` });
        this.message = element("p", { className: "message", id: `${id}-message` });
        const name = element("label", { htmlFor: id }, label);
        const hint = element("span", { className: "help", id: `${id}-help` }, help);
        this.row = element("div", { className: "number" }, name, hint, this.input, this.range, this.message);
        this.input.addEventListener("input", () => (this.#follow(), changed(this.input.value)));
        this.range.addEventListener("input", () => this.#slide(atNotch(this.range.valueAsNumber, slider), changed));
        this.range.addEventListener("keydown", (event) => this.#step(event, changed));
    }

    /** Shows a text; `solved` where it is an answer and not to be changed. */
    show(text, solved = false) {
        this.row.classList.toggle("solved", solved);
        this.input.readOnly = solved;
        this.range.disabled = solved;
        if (this.input.value !== text) this.input.value = text;
        this.#follow();
    }

    complain(sentence) {
        complain(this.input, this.message, sentence);
    }

    #slide(text, changed) {
        this.input.value = text;
        this.#tell();
        changed(text);
    }

    // One notch may be less than the digits that are shown, and an arrow key would do nothing.
    #step(event, changed) {
        const way = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
        if (!way) return;
        event.preventDefault();
        const now = valueOf(this.input.value);
        const stays = (notch) => way * (Number(atNotch(notch, this.slider)) - now) <= 0;
        let notch = this.range.valueAsNumber + way;
        while (notch >= 0 && notch <= NOTCHES && stays(notch)) notch += way;
        if (notch < 0 || notch > NOTCHES) return;
        this.range.value = notch;
        this.#slide(atNotch(notch, this.slider), changed);
    }

    #follow() {
        const value = valueOf(this.input.value);
        if (Number.isFinite(value)) this.range.value = notchOf(value, this.slider);
        this.#tell();
    }

    #tell() {
        this.range.style.setProperty("--at", this.range.valueAsNumber / NOTCHES);
        this.range.setAttribute("aria-valuetext", this.input.value || "nothing");
    }
}

/** A text form written by hand. */
export class TextField {
    constructor(id, label, changed) {
        this.input = element("textarea", { id, rows: 3, spellcheck: false, "aria-describedby": `${id}-message` });
        this.message = element("p", { className: "message", id: `${id}-message` });
        this.row = element("div", { className: "written" }, element("label", { htmlFor: id }, label), this.input, this.message);
        this.input.addEventListener("input", () => changed(this.input.value));
    }

    show(text) {
        if (this.input.value !== text) this.input.value = text;
    }

    complain(sentence) {
        complain(this.input, this.message, sentence);
    }
}
