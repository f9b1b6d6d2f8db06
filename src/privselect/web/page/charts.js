// Draws a chart specification with uPlot, with its key and caption.

import { element } from "./fields.js";
import { format, formatUp } from "./numbers.js";
import { LINES, palette } from "./plot_style.js";

const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
const LABEL_HEIGHT = 14; // of a label above the frame
const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/** Formats a tick of a logarithmic axis: 1, 100, 10⁻⁶. */
function formatTick(value) {
    const power = Math.round(Math.log10(value));
    if (Math.abs(value / 10 ** power - 1) > 1e-9 || (power >= 0 && power < 6)) return format(value, 3);
    return power >= -2 ? format(value, 3) : "10" + [...String(power)].map((sign) => SUPERSCRIPTS[sign]).join("");
}

/** Returns about five to nine round values between two powers of ten, as their logarithms. */
function logTicks(low, high) {
    const span = high - low;
    const found = [];
    const stride = Math.max(1, Math.ceil(span / 8));
    for (let power = Math.floor(low); power <= Math.ceil(high); power += 1) {
        for (const digit of span > 3 ? [1] : span > 2 ? [1, 3] : [1, 2, 5]) {
            const at = power + Math.log10(digit);
            if (at >= low - 1e-3 && at <= high + 1e-3 && power % stride === 0) found.push(at);
        }
    }
    return found;
}

const INTEGER_STEPS = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));

function axis(colours, scale, side, label, { logarithmic = false, integer = false } = {}) {
    const ticks = logarithmic ? { splits: (plot, _, low, high) => logTicks(low, high) } : integer ? { incrs: INTEGER_STEPS } : {};
    return {
        scale, side, label, labelFont: FONT, font: FONT, labelSize: 22, labelGap: 2, gap: 5, size: side === 3 ? 48 : 28,
        stroke: colours.faint, grid: { stroke: colours.grid, width: 1 }, ticks: { show: false },
        space: side === 3 ? 34 : 56,
        values: (_, splits) => splits.map((value) => (logarithmic ? formatTick(10 ** value) : format(value, 4))),
        ...ticks,
    };
}

/** Draws a chart into a box. `onMove(index)` is called with the data index under the pointer. */
export function draw(box, spec, colours, width, height, onMove) {
    const { series, swapped = false, log, steps, y, rules = [] } = spec;
    // A logarithmic axis is drawn along powers of ten, because uPlot's own logarithmic scale ends at 1e-16.
    const toAxis = log === "x" ? Math.log10 : (x) => x;
    const xs = spec.xs.map(toAxis);
    const options = {
        width, height, padding: [10 + LABEL_HEIGHT * rules.length, 14, 0, 0], legend: { show: false },
        cursor: { drag: { x: false, y: false, setScale: false }, x: !swapped, y: swapped, points: { show: Boolean(onMove) } },
        scales: {
            x: { time: false, ori: swapped ? 1 : 0, range: () => bounds(xs) },
            y: { ori: swapped ? 0 : 1, range: () => y },
        },
        axes: [
            axis(colours, "x", swapped ? 3 : 2, spec.xLabel, { logarithmic: log === "x", integer: steps }),
            axis(colours, "y", swapped ? 2 : 3, spec.yLabel),
        ],
        series: [{}, ...series.map(({ name }) => line(LINES[name], colours, steps))],
        hooks: {
            draw: [(plot) => annotate(plot, spec, toAxis, colours)],
            setCursor: [(plot) => onMove?.(plot.cursor.idx)],
        },
    };
    return new uPlot(options, [xs, ...series.map(({ values }) => values)], box);
}

const bounds = (xs) => (xs.length > 1 ? [Math.min(xs[0], xs.at(-1)), Math.max(xs[0], xs.at(-1))] : [xs[0] - 1, xs[0] + 1]);

// Straight lines: nothing is computed between the points. The height of a step is the value at its right end.
function line({ colour, width, dash }, colours, steps) {
    const made = { stroke: colours[colour], width, dash, cap: "butt", points: { show: false }, spanGaps: false };
    return { ...made, paths: steps ? uPlot.paths.stepped({ align: -1 }) : uPlot.paths.linear() };
}

/** Draws the rules and the rings on top of the lines. */
function annotate(plot, { rules = [], marks, swapped }, toAxis, colours) {
    const { ctx, bbox } = plot;
    const unit = uPlot.pxRatio;
    ctx.save();
    drawRules(plot, rules, toAxis, colours, unit);
    for (const { x, y } of marks) {
        if (x === null || y === null) continue;
        const [along, value] = [plot.valToPos(toAxis(x), "x", true), plot.valToPos(y, "y", true)];
        const [across, up] = swapped ? [value, along] : [along, value];
        const inside = across >= bbox.left && across <= bbox.left + bbox.width && up >= bbox.top && up <= bbox.top + bbox.height;
        if (!inside) continue;
        ctx.beginPath();
        ctx.arc(across, up, 5.5 * unit, 0, 2 * Math.PI);
        ctx.fillStyle = colours.paper;
        ctx.fill();
        ctx.strokeStyle = colours.mark;
        ctx.lineWidth = 2.5 * unit;
        ctx.stroke();
    }
    ctx.restore();
}

/** Draws vertical rules. Their labels are above the frame, one below the other, so no line crosses them. */
function drawRules({ ctx, bbox, scales, valToPos }, rules, toAxis, colours, unit) {
    const shown = rules.map(({ x, label }, index) => ({ x: toAxis(x), label, top: bbox.top - LABEL_HEIGHT * (rules.length - index) * unit }));
    const inside = shown.filter(({ x }) => x <= scales.x.max);
    ctx.font = FONT.replace("12px", `${11 * unit}px`);
    ctx.strokeStyle = colours.mark;
    ctx.lineWidth = unit;
    ctx.setLineDash([2 * unit, 3 * unit]);
    for (const { x, top } of inside) {
        ctx.beginPath();
        ctx.moveTo(valToPos(x, "x", true), top);
        ctx.lineTo(valToPos(x, "x", true), bbox.top + bbox.height);
        ctx.stroke();
    }
    ctx.setLineDash([]);
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    for (const { x, label, top } of inside) {
        const wide = ctx.measureText(label).width;
        const left = Math.min(valToPos(x, "x", true) + 4 * unit, ctx.canvas.width - wide - unit);
        ctx.fillStyle = colours.paper;
        ctx.fillRect(left - unit, top, wide + 2 * unit, LABEL_HEIGHT * unit); // another rule may pass here
        ctx.fillStyle = colours.mark;
        ctx.fillText(label, left, top + 0.5 * LABEL_HEIGHT * unit);
    }
}

function swatch({ colour, width, dash }, colours) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const style = { x1: 0, x2: 26, y1: 5, y2: 5, stroke: colours[colour], "stroke-width": width, "stroke-dasharray": dash.join(" ") };
    const frame = { viewBox: "0 0 26 10", width: 26, height: 10, "aria-hidden": "true" };
    for (const [name, value] of Object.entries(style)) stroke.setAttribute(name, value);
    for (const [name, value] of Object.entries(frame)) made.setAttribute(name, value);
    made.append(stroke);
    return made;
}

/** A figure of the page. It is drawn again when the colour scheme or the width changes. */
export class Chart {
    constructor(figure) {
        this.figure = figure;
        this.caption = figure.querySelector("figcaption p");
        this.heading = figure.querySelector("figcaption h2");
        this.title = [...this.heading.childNodes];
        this.key = figure.querySelector(".key");
        this.box = figure.querySelector(".plot");
        this.spec = null;
        new ResizeObserver(() => this.#width() !== this.plot?.width && this.#draw()).observe(this.box);
    }

    show(spec) {
        this.spec = spec;
        this.caption.textContent = spec.note ?? spec.caption;
        this.heading.replaceChildren(...(spec.title ? [spec.title] : this.title));
        this.box.setAttribute("aria-label", spec.note ?? spec.description);
        this.box.hidden = Boolean(spec.note);
        this.key.hidden = !(spec.series?.length > 1);
        this.redraw();
    }

    redraw() {
        if (!this.spec) return;
        this.#drawKey(palette());
        this.#draw();
    }

    #width() {
        return Math.floor(this.box.clientWidth);
    }

    #draw() {
        this.plot?.destroy();
        this.plot = null;
        if (!this.spec || this.spec.note || this.#width() === 0) return;
        this.plot = draw(this.box, this.spec, palette(), this.#width(), this.box.clientHeight, (index) => this.#showValues(index));
    }

    #drawKey(colours) {
        const items = (this.spec.series ?? []).map(({ name, label }) =>
            element("li", {}, swatch(LINES[name], colours), label, element("span", { "aria-hidden": "true" })));
        this.key.replaceChildren(...items);
    }

    // Shows the values under the pointer in the key.
    #showValues(index) {
        const { series } = this.spec;
        [...this.key.children].forEach((item, number) => {
            const value = index === null || index === undefined ? null : series[number].values[index];
            item.lastChild.textContent = value === null ? "" : ` ${formatUp(value, 4)}`;
        });
    }
}
