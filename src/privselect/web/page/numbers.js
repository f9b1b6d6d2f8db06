// Numbers as people write them, and where they stand on a slider.

const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?(\s*\/\s*0*[1-9]\d*)?$/i;

export const NOTCHES = 1000; // of every slider

/** Whether a text is a number or a fraction, as the text forms take them. */
export const isNumber = (text) => NUMBER.test(text.trim());

const shortened = (text) => (text.length <= 80 ? text : `${text.slice(0, 77)}...`);

/** What is said of a text that is no number. */
export const notNumber = (name, text) => `\`${name}\` must be a number, got '${shortened(text.trim())}'`;

/** The value of such a text; NaN for any other. */
export function valueOf(text) {
    if (!isNumber(text)) return NaN;
    const [top, bottom = "1"] = text.trim().split("/");
    return Number(top) / Number(bottom);
}

/** A number in few digits, with an exponent where zeros would hide it. */
export function written(value, digits = 7) {
    if (value === 0) return "0";
    const rounded = Number(value.toPrecision(digits));
    const size = Math.abs(rounded);
    if (size >= 1e-3 && size < 1e6) return String(rounded);
    const [mantissa, exponent] = rounded.toExponential().split("e");
    return `${mantissa}e${Number(exponent)}`;
}

/** Rounded up or down, never to the nearest: a bound must stay one. */
export function outward(value, digits, up) {
    if (value === 0 || !Number.isFinite(value)) return String(value);
    const near = written(value, digits);
    if (up ? Number(near) >= value : Number(near) <= value) return near;
    const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) + 1 - digits);
    return written(Number(near) + (up ? unit : -unit), digits);
}

/** Rounded up, for an upper end. */
export const atMost = (value, digits = 5) => (value === null ? "infinite" : outward(value, digits, true));

/** Rounded down, for a lower end. */
export const atLeast = (value, digits = 5) => outward(value, digits, false);

/** A share in per cent, without the last crumb that the multiplication leaves. */
export const inPercent = (share) => Number((100 * share).toPrecision(15));

/** A chance in per cent, rounded down. */
export function percent(chance) {
    if (chance >= 1) return "100%";
    return chance >= 1e-3 ? `${(Math.floor(chance * 1000) / 10).toFixed(1)}%` : `${atLeast(100 * chance, 2)}%`;
}

/** Where a value stands on its slider, from 0 to NOTCHES. */
export function notchOf(value, { scale, low, high }) {
    const share = scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Number.isFinite(share) ? Math.round(NOTCHES * Math.min(1, Math.max(0, share))) : 0;
}

/** The value at a place on a slider, in few digits. */
export function atNotch(notch, { scale, low, high, whole, digits }) {
    const share = notch / NOTCHES;
    const value = scale === "log" ? low * (high / low) ** share : low + share * (high - low);
    return whole ? String(Math.round(value)) : written(value, digits);
}
