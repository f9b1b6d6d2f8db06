// The buttons that hand something over: files and texts for the clipboard.

import { post } from "./ask.js";
import { copy, csv, png, save } from "./downloads.js";

const at = (id) => document.getElementById(id);
const TITLES = { mean: "The price of more trials", profile: "The whole privacy profile", law: "How many trials" };
const say = (sentence) => (at("download-message").textContent = sentence);

/** `last()` is the last good answer, or null; `link()` the address of the page as it stands. */
export function offer(last, link) {
    const fetched = async (path, name) => {
        const { question, answer } = last();
        if (answer.value === null) return say("There is no finite answer to go on with.");
        const response = await post(path, { ...question, value: answer.value }, { busy: () => say("The server is busy, asking again.") });
        say("");
        save(await response.blob(), name);
    };
    const drawn = async (make, name) => {
        const { mean, profile, law } = last().details;
        if (!mean) return say("The charts are still being computed.");
        save(await make([mean, profile, law]), name);
    };
    const sheet = (pictures) => png(at("sentence").textContent, at("proof").textContent, at("asked").textContent, pictures, TITLES);
    const files = {
        "download-plan": () => fetched("/api/plan", "plan.toml"),
        "download-certificate": () => fetched("/api/certificate", "certificate-draft.json"),
        "download-png": () => drawn(sheet, "plan.png"),
        "download-csv": () => drawn(csv, "plan.csv"),
    };
    for (const [id, make] of Object.entries(files)) at(id).addEventListener("click", () => hand(at(id), make, last));
    for (const id of ["python", "command"]) {
        const button = at(`copy-${id}`);
        button.addEventListener("click", () => copied(button, at(id).textContent, at(id)));
    }
    at("copy-link").addEventListener("click", () => copied(at("copy-link"), link(), null));
}

async function hand(button, make, last) {
    if (!last()) return say("There is no answer yet.");
    button.setAttribute("aria-busy", "true");
    say("");
    try {
        await make();
    } catch (error) {
        say(error.message);
    } finally {
        button.removeAttribute("aria-busy");
    }
}

const timers = new Map(); // of the buttons that say what happened

async function copied(button, text, shown) {
    button.dataset.label ??= button.textContent;
    const done = await copy(text, shown);
    const tell = (word, heard) => ((button.textContent = word), (at("copied").textContent = heard));
    tell(done, done);
    clearTimeout(timers.get(button));
    timers.set(button, setTimeout(() => tell(button.dataset.label, ""), 1500));
}
