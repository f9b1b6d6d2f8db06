// Numbers as people write them, and their positions on a slider.

const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?(\s*\/\s*0*[1-9]\d*)?$/i;

export const SLIDER_STEPS = 1000;

/** Returns whether a text is a number or a fraction, as in text forms. */
export const isNumber = (text) => NUMBER.test(text.trim());

const truncated = (text) => (text.length <= 80 ? text : `${text.slice(0, 77)}...`);

/** Returns the error for a text that is not a number. */
export const notNumber = (name, text) => `\`${name}\` must be a number, got '${truncated(text.trim())}'`;

/** Returns the value of a number or fraction, and NaN for any other text. */
export function valueOf(text) {
    if (!isNumber(text)) return NaN;
    const [top, bottom = "1"] = text.trim().split("/");
    return Number(top) / Number(bottom);
}

/** Formats a number with few digits, and with an exponent if it is very small or large. */
export function format(value, digits = 7) {
    if (value === 0) return "0";
    const rounded = Number(value.toPrecision(digits));
    const size = Math.abs(rounded);
    if (size >= 1e-3 && size < 1e6) return String(rounded);
    const [mantissa, exponent] = rounded.toExponential().split("e");
    return `${mantissa}e${Number(exponent)}`;
}

/** Formats a bound, rounded up or down, so the text is a bound too. */
function formatOutward(value, digits, up) {
    if (value === 0 || !Number.isFinite(value)) return String(value);
    const nearest = format(value, digits);
    if (up ? Number(nearest) >= value : Number(nearest) <= value) return nearest;
    const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) + 1 - digits);
    return format(Number(nearest) + (up ? unit : -unit), digits);
}

/** Formats an upper bound, rounded up; null is infinite. */
export const formatUp = (value, digits = 5) => (value === null ? "infinite" : formatOutward(value, digits, true));

/** Formats a lower bound, rounded down. */
export const formatDown = (value, digits = 5) => formatOutward(value, digits, false);

/** Converts a fraction to percent, without the rounding error of the multiplication. */
export const toPercent = (fraction) => Number((100 * fraction).toPrecision(15));

/** Formats a probability in percent, rounded down. */
export function percentDown(probability) {
    if (probability >= 1) return "100%";
    return probability >= 1e-3 ? `${(Math.floor(probability * 1000) / 10).toFixed(1)}%` : `${formatDown(100 * probability, 2)}%`;
}

/** Returns the slider position of a value, from 0 to SLIDER_STEPS. */
export function sliderPosition(value, { scale, low, high }) {
    const fraction = scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Number.isFinite(fraction) ? Math.round(SLIDER_STEPS * Math.min(1, Math.max(0, fraction))) : 0;
}

/** Returns the value at a slider position, as text with few digits. */
export function sliderText(position, { scale, low, high, integer, digits }) {
    const fraction = position / SLIDER_STEPS;
    const value = scale === "log" ? low * (high / low) ** fraction : low + fraction * (high - low);
    return integer ? String(Math.round(value)) : format(value, digits);
}
