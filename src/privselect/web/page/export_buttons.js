// The buttons that download files or copy texts.

import { post } from "./api.js";
import { copy, csv, png, save } from "./downloads.js";

const byId = (id) => document.getElementById(id);
const TITLES = { mean: "Epsilon by mean of K", profile: "Privacy profile", survival: "Number of trials" };
const say = (message) => (byId("download-message").textContent = message);

/** `getResult()` returns the last result, or null; `getLink()` returns the URL of the question. */
export function connectExportButtons(getResult, getLink) {
    const fetchFile = async (path, name) => {
        const { question, answer } = getResult();
        if (answer.value === null) return say("There is no finite answer to export.");
        const response = await post(path, { ...question, value: answer.value, final_value: answer.final_value }, { onBusy: () => say("Server busy. Retrying.") });
        say("");
        save(await response.blob(), name);
    };
    const makeFile = async (make, name) => {
        const { mean, profile, survival } = getResult().details;
        if (!mean) return say("The charts are not ready yet.");
        save(await make([mean, profile, survival]), name);
    };
    const image = (specs) =>
        png(byId("sentence").textContent, byId("proof").textContent, byId("question-text").textContent, specs, TITLES);
    const actions = {
        "download-plan": () => fetchFile("/api/plan", "plan.toml"),
        "download-certificate": () => fetchFile("/api/certificate", "certificate-draft.json"),
        "download-png": () => makeFile(image, "plan.png"),
        "download-csv": () => makeFile(csv, "plan.csv"),
    };
    for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", () => run(byId(id), action, getResult));
    for (const id of ["python", "command"]) {
        const button = byId(`copy-${id}`);
        button.addEventListener("click", () => copyAndReport(button, byId(id).textContent, byId(id)));
    }
    byId("copy-link").addEventListener("click", () => copyAndReport(byId("copy-link"), getLink(), null));
}

async function run(button, action, getResult) {
    if (!getResult()) return say("There is no answer yet.");
    button.setAttribute("aria-busy", "true");
    say("");
    try {
        await action();
    } catch (error) {
        say(error.message);
    } finally {
        button.removeAttribute("aria-busy");
    }
}

const timers = new Map(); // of the buttons that show a status

async function copyAndReport(button, text, shownIn) {
    button.dataset.label ??= button.textContent;
    const status = await copy(text, shownIn);
    const report = (label, spoken) => ((button.textContent = label), (byId("copied").textContent = spoken));
    report(status, status);
    clearTimeout(timers.get(button));
    timers.set(button, setTimeout(() => report(button.dataset.label, ""), 1500));
}
