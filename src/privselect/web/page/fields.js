// Form fields: a number with a slider and a place for an error, and a text form.

import { SLIDER_STEPS, sliderPosition, sliderText, valueOf } from "./numbers.js";

/** Creates an element with properties and children. */
export function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (name in made && !name.includes("-")) made[name] = value;
        else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
}

/** Shows an error next to a control; an empty message removes it. */
export function showError(control, place, message) {
    place.textContent = message;
    if (message) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
    if (message && document.activeElement === control) place.scrollIntoView({ block: "nearest" });
}

export class NumberField {
    /** Calls `onChange(text)` on every change, by typing or by slider. */
    constructor(id, { label, help, slider }, onChange) {
        this.slider = slider;
        this.input = element("input", { id, type: "text", inputMode: "text", "aria-describedby": `${id}-help ${id}-message` });
        const scale = { type: "range", min: 0, max: SLIDER_STEPS, step: 1 };
        this.range = element("input", { id: `${id}-slider`, ...scale, "aria-label": `${label}, slider` });
        this.message = element("p", { className: "message", id: `${id}-message` });
        const name = element("label", { htmlFor: id }, label);
        const hint = element("span", { className: "help", id: `${id}-help` }, help);
        this.row = element("div", { className: "number" }, name, hint, this.input, this.range, this.message);
        this.input.addEventListener("input", () => (this.#moveSlider(), onChange(this.input.value)));
        this.range.addEventListener("input", () => this.#setText(sliderText(this.range.valueAsNumber, slider), onChange));
        this.range.addEventListener("keydown", (event) => this.#moveByKey(event, onChange));
    }

    /** Shows a text. A solved number cannot be edited. */
    show(text, isSolved = false) {
        this.row.classList.toggle("solved", isSolved);
        this.input.readOnly = isSolved;
        this.range.disabled = isSolved;
        if (this.input.value !== text) this.input.value = text;
        this.#moveSlider();
    }

    showError(message) {
        showError(this.input, this.message, message);
    }

    #setText(text, onChange) {
        this.input.value = text;
        this.#describeSlider();
        onChange(text);
    }

    // One slider step may be less than the digits that are shown. Arrow keys skip steps until the text changes.
    #moveByKey(event, onChange) {
        const direction = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
        if (!direction) return;
        event.preventDefault();
        const now = valueOf(this.input.value);
        const isUnchanged = (position) => direction * (Number(sliderText(position, this.slider)) - now) <= 0;
        let position = this.range.valueAsNumber + direction;
        while (position >= 0 && position <= SLIDER_STEPS && isUnchanged(position)) position += direction;
        if (position < 0 || position > SLIDER_STEPS) return;
        this.range.value = position;
        this.#setText(sliderText(position, this.slider), onChange);
    }

    #moveSlider() {
        const value = valueOf(this.input.value);
        if (Number.isFinite(value)) this.range.value = sliderPosition(value, this.slider);
        this.#describeSlider();
    }

    #describeSlider() {
        this.range.style.setProperty("--at", this.range.valueAsNumber / SLIDER_STEPS);
        this.range.setAttribute("aria-valuetext", this.input.value || "empty");
    }
}

export class TextField {
    constructor(id, label, onChange) {
        this.input = element("textarea", { id, rows: 3, spellcheck: false, "aria-describedby": `${id}-message` });
        this.message = element("p", { className: "message", id: `${id}-message` });
        this.row = element("div", { className: "text-form" }, element("label", { htmlFor: id }, label), this.input, this.message);
        this.input.addEventListener("input", () => onChange(this.input.value));
    }

    show(text) {
        if (this.input.value !== text) this.input.value = text;
    }

    showError(message) {
        showError(this.input, this.message, message);
    }
}
