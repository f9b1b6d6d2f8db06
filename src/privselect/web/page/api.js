// Requests to the server: one of a kind at a time, and the latest one wins.

/** An error response: one sentence, and the field that it is about, if any. */
export class ApiError extends Error {
    constructor(message, field) {
        super(message);
        this.field = field;
    }
}

export const NO_RESPONSE = "The server does not answer.";

/** The server cannot be reached. */
export class UnreachableError extends Error {}

const pause = (seconds, signal) =>
    new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, 1000 * seconds);
        signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
    });

/** Returns the response to a request. While the server is busy, it calls `onBusy` and retries. */
export async function post(path, body, { signal, onBusy } = {}) {
    for (;;) {
        let response;
        try {
            const headers = { "Content-Type": "application/json" };
            response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
        } catch (error) {
            if (signal?.aborted) throw error;
            throw new UnreachableError(NO_RESPONSE);
        }
        if (response.ok) return response;
        if (response.status !== 429) throw await readError(response);
        onBusy?.();
        await pause(Math.min(30, Math.max(0.2, Number(response.headers.get("Retry-After")) || 1)), signal);
    }
}

async function readError(response) {
    try {
        const { error } = await response.json();
        return new ApiError(error.message, error.field);
    } catch {
        return new ApiError(`The server failed with status ${response.status}.`, null);
    }
}

/**
 * Sends one kind of request. A newer request waits for the running one, so the page updates while a slider moves.
 * After `patience` milliseconds, the running request is aborted instead.
 */
export class LatestRequest {
    constructor(path, { patience, onAnswer, onError, onBusy }) {
        Object.assign(this, { path, patience, onAnswer, onError, onBusy, next: null, running: null });
    }

    send(body) {
        this.next = body;
        if (!this.running) this.#run();
        else this.#abortSoon(this.running);
    }

    /** Drops the running and the waiting request. */
    cancel() {
        this.next = null;
        this.running?.control.abort();
    }

    #abortSoon(running) {
        clearTimeout(running.timer);
        const left = running.since + this.patience - performance.now();
        if (left <= 0 || running.busy) running.control.abort();
        else running.timer = setTimeout(() => running.control.abort(), left);
    }

    async #run() {
        while (this.next !== null) {
            const body = this.next;
            const running = { control: new AbortController(), since: performance.now(), busy: false };
            const signal = running.control.signal;
            const onBusy = () => ((running.busy = true), this.onBusy?.());
            this.next = null;
            this.running = running;
            try {
                const response = await post(this.path, body, { signal, onBusy });
                this.onAnswer(await response.json(), body);
            } catch (error) {
                if (!signal.aborted) this.onError(error, body);
            } finally {
                clearTimeout(running.timer);
                this.running = null;
            }
        }
    }
}
