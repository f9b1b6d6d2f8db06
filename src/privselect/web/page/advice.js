// The comparison of the ways to tune a training with one budget.

import { ApiError, post, UnreachableError } from "./api.js";
import { asSentence } from "./chart_specs.js";
import { element } from "./fields.js";
import { formatUp, percentDown } from "./numbers.js";
import { addresses, get, noiseOf, readQuestion, set, writeQuestion } from "./state.js";

const UNSUITABLE = "Ways are compared for a training with DP-SGD, Gaussian or Laplace noise.";
const NAMES = { "no tuning": "no tuning: one training", "one shot": "one shot", "secret search": "search, then train", "visible search": "visible search, then train" };
const byId = (id) => document.getElementById(id);

export class Advice {
    /** `getResult()` returns the last result, or null. `useQuestion(question)` puts a question into the form. */
    constructor({ getResult, useQuestion }) {
        Object.assign(this, { getResult, useQuestion, control: null });
        byId("advice-compare").addEventListener("click", () => this.#compare());
    }

    /** Marks the table as one for another question. */
    markStale() {
        byId("advice-result").dataset.state = "stale";
    }

    async #compare() {
        const body = goalOf(this.getResult());
        if (!body) return this.#say(UNSUITABLE);
        this.control?.abort();
        const control = (this.control = new AbortController());
        byId("advice").setAttribute("aria-busy", "true");
        this.#say("Comparing. This may take half a minute.");
        try {
            const response = await post("/api/advise", body, { signal: control.signal, onBusy: () => this.#say("Server busy. Retrying.") });
            this.#show(await response.json());
            if (JSON.stringify(goalOf(this.getResult())) !== JSON.stringify(body)) this.markStale(); // the question has changed
            this.#say("");
        } catch (error) {
            if (control.signal.aborted) return;
            if (!(error instanceof ApiError || error instanceof UnreachableError)) throw error;
            this.#say(error.message);
        } finally {
            if (this.control === control) byId("advice").removeAttribute("aria-busy");
        }
    }

    #say(message) {
        byId("advice-message").textContent = message;
    }

    #show({ parameter, recommended, reason, caution, ways }) {
        const noise = parameter.replaceAll("_", " ");
        const titles = ["way", `${noise} in the search`, `${noise} of the released model`, "more noise than without tuning", "one of the best 10% is tried"];
        const head = [...titles, ""].map((text) => element("th", { scope: "col" }, text));
        const rows = ways.map((way) => this.#row(way, way.way === recommended, titles.slice(1)));
        const table = element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
        const frame = element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Ways to tune" }, table);
        const words = [`Recommended: ${NAMES[recommended] ?? recommended}, because ${reason}.`, ...(caution ? [asSentence(caution)] : [])];
        byId("advice-result").dataset.state = "current";
        byId("advice-result").replaceChildren(...words.map((text) => element("p", {}, text)), frame);
    }

    #row({ way, search_noise: search, released_noise: released, extra_noise: extra, trials, good_candidate: good, question }, isBest, titles) {
        // On a narrow screen the row becomes a list, and each number has the title of its column in front.
        const cell = (value, write, title) => element("td", { "data-title": title, className: value === null ? "empty" : "" }, value === null ? "–" : write(value));
        const useButton = element("button", { type: "button", "aria-label": `Use ${NAMES[way] ?? way}` }, "Use");
        useButton.addEventListener("click", () => this.useQuestion(question));
        const head = element("th", { scope: "row" }, NAMES[way] ?? way, ...(trials ? [element("small", {}, trials)] : []));
        const more = (value) => (value === 0 ? "–" : `${Math.round(100 * value)}%`);
        const up = (one) => formatUp(one, 4);
        const columns = [[search, up], [released, up], [extra, more], [good, percentDown]];
        const cells = columns.map(([value, write], index) => cell(value, write, titles[index]));
        return element("tr", { className: isBest ? "exact" : "" }, head, ...cells, element("td", {}, useButton));
    }
}

/** Returns the training whose model is released, with an open noise, and the budget; null if it has no noise to open. */
function goalOf(result) {
    if (!result) return null;
    const { question, answer } = result;
    const [asked, solved] = [question, answer].map(({ final, mechanism }) => trainingOf(final ?? mechanism));
    const noise = noiseOf(asked, "mechanism");
    const epsilon = answer.epsilon ?? answer.cost.upper;
    if (!noise || !epsilon || answer.delta === null) return null;
    for (const address of addresses(asked)) if (get(asked, address) === "?") set(asked, address, get(solved, address));
    set(asked, noise, "?");
    return { mechanism: writeQuestion(asked).mechanism, epsilon, delta: answer.delta };
}

const trainingOf = (mechanism) => readQuestion({ mechanism, count: "", epsilon: "1", delta: "1" });
