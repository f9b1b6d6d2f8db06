// Talking to the server: one question of a kind at a time, and the latest one wins.

/** The server said no, in a sentence, and mostly about one field. */
export class Refusal extends Error {
    constructor(message, field) {
        super(message);
        this.field = field;
    }
}

export const SILENT = "The server does not answer.";

/** Nobody answers. */
export class Gone extends Error {}

const pause = (seconds, signal) =>
    new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, 1000 * seconds);
        signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
    });

/** The response to a question; while the server is busy, `busy` is told and it is asked again. */
export async function post(path, body, { signal, busy } = {}) {
    for (;;) {
        let response;
        try {
            const headers = { "Content-Type": "application/json" };
            response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
        } catch (error) {
            if (signal?.aborted) throw error;
            throw new Gone(SILENT);
        }
        if (response.ok) return response;
        if (response.status !== 429) throw await refusal(response);
        busy?.();
        await pause(Math.min(30, Math.max(0.2, Number(response.headers.get("Retry-After")) || 1)), signal);
    }
}

async function refusal(response) {
    try {
        const { error } = await response.json();
        return new Refusal(error.message, error.field);
    } catch {
        return new Refusal(`The server failed with status ${response.status}.`, null);
    }
}

/**
 * Asks one kind of question. A newer question waits for the one under way, so that something is seen while a slider
 * moves; but no longer than `patience` milliseconds, after which the old one is given up.
 */
export class Latest {
    constructor(path, { patience, answered, failed, busy }) {
        Object.assign(this, { path, patience, answered, failed, busy, next: null, running: null });
    }

    ask(body) {
        this.next = body;
        if (!this.running) this.#run();
        else this.#hurry(this.running);
    }

    /** Forget what is asked. */
    cancel() {
        this.next = null;
        this.running?.control.abort();
    }

    #hurry(running) {
        clearTimeout(running.timer);
        const left = running.since + this.patience - performance.now();
        if (left <= 0 || running.waits) running.control.abort();
        else running.timer = setTimeout(() => running.control.abort(), left);
    }

    async #run() {
        while (this.next !== null) {
            const body = this.next;
            const running = { control: new AbortController(), since: performance.now(), waits: false };
            const signal = running.control.signal;
            const busy = () => ((running.waits = true), this.busy?.());
            this.next = null;
            this.running = running;
            try {
                const response = await post(this.path, body, { signal, busy });
                this.answered(await response.json(), body);
            } catch (error) {
                if (!signal.aborted) this.failed(error, body);
            } finally {
                clearTimeout(running.timer);
                this.running = null;
            }
        }
    }
}
