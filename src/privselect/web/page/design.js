// The panel that finds the law of K with the highest success probability at the same privacy cost.

import { ApiError, post, UnreachableError } from "./api.js";
import { element, showError } from "./fields.js";
import { format, formatDown, formatUp, isNumber, notNumber, toPercent, valueOf } from "./numbers.js";

const INPUTS = {
    tau: { label: "good fraction", help: "of all candidates", start: "0.01" },
    cap: { label: "largest K", help: "no run has more trials", start: "100" },
    mean: { label: "largest mean of K", help: "default: the current mean", start: "30" },
};
const FAMILIES = { geometric: "geometric (no cap)", negative_binomial: "negative binomial", binomial: "binomial" };

export class Design {
    /** `getGoal()` returns the mechanism, the budget and the mean of K, or null. `useCount(text)` takes the law of K that was found. */
    constructor(section, opener, { getGoal, useCount }) {
        Object.assign(this, { section, opener, getGoal, useCount, control: null, fields: {} });
        for (const [name, { label, help, start }] of Object.entries(INPUTS)) this.fields[name] = this.#field(name, label, help, start);
        this.findButton = element("button", { type: "button", className: "main" }, "Find best law of K");
        this.cancelButton = element("button", { type: "button", hidden: true }, "Cancel");
        this.status = element("p", { className: "message", role: "status" });
        this.result = element("div", { className: "design-result" });
        const rows = Object.values(this.fields).map(({ row }) => row);
        const buttons = element("p", { className: "buttons" }, this.findButton, this.cancelButton);
        section.append(...rows, buttons, this.status, this.result);
        this.findButton.addEventListener("click", () => this.#find());
        this.cancelButton.addEventListener("click", () => this.control?.abort());
        opener.addEventListener("click", () => this.#toggle());
        section.addEventListener("keydown", (event) => event.key === "Escape" && (this.#toggle(), opener.focus()));
    }

    #field(name, label, help, start) {
        const id = `design-${name}`;
        const input = element("input", { id, type: "text", value: start, "aria-describedby": `${id}-help ${id}-message` });
        const message = element("p", { className: "message", id: `${id}-message` });
        const row = element("div", { className: "number compact" },
            element("label", { htmlFor: id }, label), element("span", { className: "help", id: `${id}-help` }, help), input, message);
        const field = { input, message, row, isTyped: false };
        input.addEventListener("input", () => ((field.isTyped = true), showError(input, message, "")));
        return field;
    }

    #toggle() {
        const opens = this.section.hidden;
        this.section.hidden = !opens;
        this.opener.setAttribute("aria-expanded", String(opens));
        const mean = opens ? this.getGoal()?.mean : undefined;
        if (!mean) return;
        this.#suggest("mean", format(mean, 4));
        this.#suggest("cap", String(Math.max(10, Math.min(200, Math.round(3 * mean)))));
    }

    // Never overwrites what the user typed.
    #suggest(name, text) {
        if (!this.fields[name].isTyped) this.fields[name].input.value = text;
    }

    /** Marks the result as one for another question. */
    markStale() {
        this.result.dataset.state = "stale";
    }

    async #find() {
        const goal = this.getGoal();
        if (!goal || !this.#validate()) return;
        const { mechanism, epsilon, delta } = goal;
        const [tau, cap, mean] = ["tau", "cap", "mean"].map((name) => valueOf(this.fields[name].input.value));
        this.control?.abort();
        const control = (this.control = new AbortController());
        this.#setBusy(true);
        const since = performance.now();
        const clock = setInterval(() => this.#say(`Searching, ${Math.round((performance.now() - since) / 1000)} s.`, true), 1000);
        this.#say("Searching. This may take a minute or two.");
        try {
            const onBusy = () => this.#say("Server busy. Retrying.");
            const response = await post("/api/design", { mechanism, epsilon, delta, tau, cap, mean }, { signal: control.signal, onBusy });
            this.#show(await response.json(), { tau, cap, mean });
            if (JSON.stringify(this.getGoal()) !== JSON.stringify(goal)) this.markStale(); // the question changed during the search
            this.#say("");
        } catch (error) {
            if (control.signal.aborted) this.#say("Cancelled.");
            else if (error instanceof ApiError) this.#showApiError(error);
            else if (error instanceof UnreachableError) this.#say(error.message);
            else throw error;
        } finally {
            clearInterval(clock);
            this.#setBusy(false);
        }
    }

    #validate() {
        for (const [name, { input, message }] of Object.entries(this.fields))
            showError(input, message, isNumber(input.value) ? "" : notNumber(name, input.value));
        return Object.values(this.fields).every(({ message }) => !message.textContent);
    }

    #setBusy(isBusy) {
        this.cancelButton.hidden = !isBusy;
        this.findButton.disabled = isBusy;
        this.section.setAttribute("aria-busy", String(isBusy));
        if (!isBusy && document.activeElement === document.body) this.findButton.focus(); // the focused button was hidden
    }

    // A screen reader does not announce the clock.
    #say(message, isSilent = false) {
        this.status.setAttribute("aria-live", isSilent ? "off" : "polite");
        this.status.textContent = message;
    }

    #showApiError({ field, message }) {
        this.#say("");
        const place = this.fields[field];
        if (place) showError(place.input, place.message, message);
        else this.#say(message);
    }

    #show({ count, success_probability: success, upper_bound: bound, expected, fits }, { tau, cap, mean }) {
        const isBest = Object.values(fits).every((law) => law === null || law.success_probability <= success);
        const percent = (probability) => `${formatDown(toPercent(probability), 4)}%`;
        const head = ["law of K", "success probability"].map((text) => element("th", { scope: "col" }, text));
        const row = (name, law, className) =>
            element("tr", { className }, element("th", { scope: "row" }, name), element("td", {}, law ? percent(law.success_probability) : "none"));
        const families = Object.entries(fits).map(([name, law]) => row(FAMILIES[name] ?? name, law, ""));
        const body = element("tbody", {}, row("designed", { success_probability: success }, isBest ? "exact" : ""), ...families);
        const table = element("table", {}, element("thead", {}, element("tr", {}, ...head)), body);
        const allowed = `No law of K with at most ${cap} trials and mean at most ${formatDown(mean, 6)}`;
        const limit = bound === null ? "" : ` ${allowed} exceeds ${formatUp(toPercent(bound), 4)}%.`;
        const cost = `at the same privacy cost, with ${formatUp(expected, 4)} trials on average`;
        const good = `the best ${formatUp(toPercent(tau), 4)}% of candidates`;
        const words = `With probability ${percent(success)}, some trial is among ${good}, ${cost}.${limit}`;
        const text = element("details", {}, element("summary", {}, "Text form"), element("code", {}, count));
        const useButton = element("button", { type: "button", className: "main", id: "design-use" }, "Use this law of K");
        useButton.addEventListener("click", () => this.useCount(count));
        this.result.dataset.state = "current";
        this.result.replaceChildren(element("p", {}, words), table, text, useButton);
        this.result.scrollIntoView({ block: "nearest" });
    }
}
