// The panel that asks for the law of K with the best chance of a good candidate at the same price.

import { Gone, post, Refusal } from "./ask.js";
import { complain, element } from "./fields.js";
import { atLeast, atMost, inPercent, isNumber, notNumber, valueOf, written } from "./numbers.js";

const ASKED = {
    tau: { label: "good is the best", help: "share of all candidates", start: "0.01" },
    cap: { label: "at most", help: "trials, so that every run ends", start: "100" },
    mean: { label: "mean of K", help: "at most; that of the present law at first", start: "30" },
};
const NAMES = { geometric: "geometric, without a cap", negative_binomial: "negative binomial", binomial: "binomial" };

export class Design {
    /** `given()` returns the closed question and the mean of its law, or null; `use(text)` takes the law that was found. */
    constructor(section, opener, { given, use }) {
        Object.assign(this, { section, opener, given, use, control: null, fields: {} });
        for (const [name, { label, help, start }] of Object.entries(ASKED)) this.fields[name] = this.#field(name, label, help, start);
        this.ask = element("button", { type: "button", className: "main" }, "Find the law");
        this.stop = element("button", { type: "button", hidden: true }, "Cancel");
        this.status = element("p", { className: "message", role: "status" });
        this.found = element("div", { className: "found" });
        const rows = Object.values(this.fields).map(({ row }) => row);
        section.append(...rows, element("p", { className: "buttons" }, this.ask, this.stop), this.status, this.found);
        this.ask.addEventListener("click", () => this.#find());
        this.stop.addEventListener("click", () => this.control?.abort());
        opener.addEventListener("click", () => this.#toggle());
        section.addEventListener("keydown", (event) => event.key === "Escape" && (this.#toggle(), opener.focus()));
    }

    #field(name, label, help, start) {
        const id = `design-${name}`;
        const input = element("input", { id, type: "text", value: start, "aria-describedby": `${id}-help ${id}-message` });
        const message = element("p", { className: "message", id: `${id}-message` });
        const row = element("div", { className: "number plain" },
            element("label", { htmlFor: id }, label), element("span", { className: "help", id: `${id}-help` }, help), input, message);
        const field = { input, message, row, typed: false };
        input.addEventListener("input", () => ((field.typed = true), complain(input, message, "")));
        return field;
    }

    #toggle() {
        const opens = this.section.hidden;
        this.section.hidden = !opens;
        this.opener.setAttribute("aria-expanded", String(opens));
        const mean = opens ? this.given()?.mean : undefined;
        if (!mean) return;
        this.#suggest("mean", written(mean, 4));
        this.#suggest("cap", String(Math.max(10, Math.min(200, Math.round(3 * mean)))));
    }

    // What was typed is not taken back.
    #suggest(name, text) {
        if (!this.fields[name].typed) this.fields[name].input.value = text;
    }

    /** A new question makes an old law of little use. */
    age() {
        this.found.dataset.state = "old";
    }

    async #find() {
        const asked = this.given();
        if (!asked || !this.#check()) return;
        const { mechanism, epsilon, delta } = asked;
        const [tau, cap, mean] = ["tau", "cap", "mean"].map((name) => valueOf(this.fields[name].input.value));
        this.control?.abort();
        const control = (this.control = new AbortController());
        this.#working(true);
        const since = performance.now();
        const clock = setInterval(() => this.#say(`Looking for it, ${Math.round((performance.now() - since) / 1000)} s.`, true), 1000);
        this.#say("Looking for it. This may take a minute or two.");
        try {
            const busy = () => this.#say("The server is busy, asking again.");
            const response = await post("/api/design", { mechanism, epsilon, delta, tau, cap, mean }, { signal: control.signal, busy });
            this.#show(await response.json(), { tau, cap, mean });
            if (JSON.stringify(this.given()) !== JSON.stringify(asked)) this.age(); // meanwhile another question was asked
            this.#say("");
        } catch (error) {
            if (control.signal.aborted) this.#say("Cancelled.");
            else if (error instanceof Refusal) this.#refused(error);
            else if (error instanceof Gone) this.#say(error.message);
            else throw error;
        } finally {
            clearInterval(clock);
            this.#working(false);
        }
    }

    #check() {
        for (const [name, { input, message }] of Object.entries(this.fields))
            complain(input, message, isNumber(input.value) ? "" : notNumber(name, input.value));
        return Object.values(this.fields).every(({ message }) => !message.textContent);
    }

    #working(yes) {
        this.stop.hidden = !yes;
        this.ask.disabled = yes;
        this.section.setAttribute("aria-busy", String(yes));
        if (!yes && document.activeElement === document.body) this.ask.focus(); // the button that was pressed is gone
    }

    // A clock is for the eye: read aloud every second it would be a nuisance.
    #say(sentence, silent = false) {
        this.status.setAttribute("aria-live", silent ? "off" : "polite");
        this.status.textContent = sentence;
    }

    #refused({ field, message }) {
        this.#say("");
        const place = this.fields[field];
        if (place) complain(place.input, place.message, message);
        else this.#say(message);
    }

    #show({ count, chance, at_most: bound, expected, named }, { tau, cap, mean }) {
        const best = Object.values(named).every((law) => law === null || law.chance <= chance);
        const share = (part) => `${atLeast(inPercent(part), 4)}%`;
        const head = ["law of K", "chance"].map((text) => element("th", { scope: "col" }, text));
        const row = (name, law, className) =>
            element("tr", { className }, element("th", { scope: "row" }, name), element("td", {}, law ? share(law.chance) : "none"));
        const others = Object.entries(named).map(([name, law]) => row(NAMES[name] ?? name, law, ""));
        const body = element("tbody", {}, row("designed", { chance }, best ? "exact" : ""), ...others);
        const table = element("table", {}, element("thead", {}, element("tr", {}, ...head)), body);
        const laws = `No law of at most ${cap} trials, ${atLeast(mean, 6)} on average,`;
        const limit = bound === null ? "" : ` ${laws} does better than ${atMost(inPercent(bound), 4)}%.`;
        const price = `at the same price, with ${atMost(expected, 4)} trials on average`;
        const good = `the best ${atMost(inPercent(tau), 4)}%`;
        const words = `With ${share(chance)} some trial is among ${good}, ${price}.${limit}`;
        const text = element("details", {}, element("summary", {}, "its text form"), element("code", {}, count));
        const take = element("button", { type: "button", className: "main", id: "design-use" }, "Use this law");
        take.addEventListener("click", () => this.use(count));
        this.found.dataset.state = "fresh";
        this.found.replaceChildren(element("p", {}, words), table, text, take);
        this.found.scrollIntoView({ block: "nearest" });
    }
}
