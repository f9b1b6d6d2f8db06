// A picture drawn by uPlot, with its key and its words.

import { element } from "./fields.js";
import { LINES, palette } from "./looks.js";
import { atMost, written } from "./numbers.js";

const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
const ROW = 14; // high, for a label above the frame
const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/** 1, 100, 10⁻⁶. */
function decade(value) {
    const power = Math.round(Math.log10(value));
    if (Math.abs(value / 10 ** power - 1) > 1e-9 || (power >= 0 && power < 6)) return written(value, 3);
    return power >= -2 ? written(value, 3) : "10" + [...String(power)].map((sign) => RAISED[sign]).join("");
}

/** Round values of a logarithmic axis, some five to nine of them, between two powers of ten. */
function decades(least, most) {
    const span = most - least;
    const found = [];
    const stride = Math.max(1, Math.ceil(span / 8));
    for (let power = Math.floor(least); power <= Math.ceil(most); power += 1) {
        for (const digit of span > 3 ? [1] : span > 2 ? [1, 3] : [1, 2, 5]) {
            const at = power + Math.log10(digit);
            if (at >= least - 1e-3 && at <= most + 1e-3 && power % stride === 0) found.push(at);
        }
    }
    return found;
}

const WHOLE = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));

function axis(colours, scale, side, label, { logarithmic = false, whole = false } = {}) {
    const more = logarithmic ? { splits: (plot, _, low, high) => decades(low, high) } : whole ? { incrs: WHOLE } : {};
    return {
        scale, side, label, labelFont: FONT, font: FONT, labelSize: 22, labelGap: 2, gap: 5, size: side === 3 ? 48 : 28,
        stroke: colours.faint, grid: { stroke: colours.grid, width: 1 }, ticks: { show: false },
        space: side === 3 ? 34 : 56,
        values: (_, splits) => splits.map((value) => (logarithmic ? decade(10 ** value) : written(value, 4))),
        ...more,
    };
}

/** Draws a picture into a box, in the given colours and size; `moved(index)` hears where the pointer is. */
export function draw(box, picture, colours, width, height, moved) {
    const { series, upright = false, log, steps, y, rules = [] } = picture;
    // A logarithmic axis is drawn along powers of ten: uPlot's own ends at 1e-16.
    const along = log === "x" ? Math.log10 : (x) => x;
    const xs = picture.xs.map(along);
    const options = {
        width, height, padding: [10 + ROW * rules.length, 14, 0, 0], legend: { show: false },
        cursor: { drag: { x: false, y: false, setScale: false }, x: !upright, y: upright, points: { show: Boolean(moved) } },
        scales: {
            x: { time: false, ori: upright ? 1 : 0, range: () => ends(xs) },
            y: { ori: upright ? 0 : 1, range: () => y },
        },
        axes: [
            axis(colours, "x", upright ? 3 : 2, picture.across, { logarithmic: log === "x", whole: steps }),
            axis(colours, "y", upright ? 2 : 3, picture.along),
        ],
        series: [{}, ...series.map(({ name }) => line(LINES[name], colours, steps))],
        hooks: {
            draw: [(plot) => annotate(plot, picture, along, colours)],
            setCursor: [(plot) => moved?.(plot.cursor.idx)],
        },
    };
    return new uPlot(options, [xs, ...series.map(({ values }) => values)], box);
}

const ends = (xs) => (xs.length > 1 ? [Math.min(xs[0], xs.at(-1)), Math.max(xs[0], xs.at(-1))] : [xs[0] - 1, xs[0] + 1]);

// Straight from point to point: a curve between them would be made up. A step is as high as the place at its right end.
function line({ colour, width, dash }, colours, steps) {
    const made = { stroke: colours[colour], width, dash, cap: "butt", points: { show: false }, spanGaps: false };
    return { ...made, paths: steps ? uPlot.paths.stepped({ align: -1 }) : uPlot.paths.linear() };
}

/** The rings and the upright rules, on top of the lines. */
function annotate(plot, { rules = [], marks, upright }, along, colours) {
    const { ctx, bbox } = plot;
    const unit = uPlot.pxRatio;
    ctx.save();
    rule(plot, rules, along, colours, unit);
    for (const { x, y } of marks) {
        if (x === null || y === null) continue;
        const [place, value] = [plot.valToPos(along(x), "x", true), plot.valToPos(y, "y", true)];
        const [across, up] = upright ? [value, place] : [place, value];
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

/** Upright rules; their labels stand above the frame, one below the other, where no line runs through them. */
function rule({ ctx, bbox, scales, valToPos }, rules, along, colours, unit) {
    const shown = rules.map(({ x, label }, place) => ({ x: along(x), label, top: bbox.top - ROW * (rules.length - place) * unit }));
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
        ctx.fillRect(left - unit, top, wide + 2 * unit, ROW * unit); // the rule of another may pass here
        ctx.fillStyle = colours.mark;
        ctx.fillText(label, left, top + 0.5 * ROW * unit);
    }
}

function swatch({ colour, width, dash }, colours) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const look = { x1: 0, x2: 26, y1: 5, y2: 5, stroke: colours[colour], "stroke-width": width, "stroke-dasharray": dash.join(" ") };
    const frame = { viewBox: "0 0 26 10", width: 26, height: 10, "aria-hidden": "true" };
    for (const [name, value] of Object.entries(look)) stroke.setAttribute(name, value);
    for (const [name, value] of Object.entries(frame)) made.setAttribute(name, value);
    made.append(stroke);
    return made;
}

/** A figure of the page that shows a picture, and draws it again when the scheme or the width changes. */
export class Chart {
    constructor(figure) {
        this.figure = figure;
        this.caption = figure.querySelector("figcaption p");
        this.key = figure.querySelector(".key");
        this.box = figure.querySelector(".plot");
        this.picture = null;
        new ResizeObserver(() => this.#width() !== this.plot?.width && this.#draw()).observe(this.box);
    }

    show(picture) {
        this.picture = picture;
        this.caption.textContent = picture.note ?? picture.caption;
        this.box.setAttribute("aria-label", picture.note ?? picture.said);
        this.box.hidden = Boolean(picture.note);
        this.key.hidden = !(picture.series?.length > 1);
        this.redraw();
    }

    redraw() {
        if (!this.picture) return;
        this.#list(palette());
        this.#draw();
    }

    #width() {
        return Math.floor(this.box.clientWidth);
    }

    #draw() {
        this.plot?.destroy();
        this.plot = null;
        if (!this.picture || this.picture.note || this.#width() === 0) return;
        this.plot = draw(this.box, this.picture, palette(), this.#width(), this.box.clientHeight, (place) => this.#read(place));
    }

    #list(colours) {
        const items = (this.picture.series ?? []).map(({ name, label }) =>
            element("li", {}, swatch(LINES[name], colours), label, element("span", { "aria-hidden": "true" })));
        this.key.replaceChildren(...items);
    }

    // What the lines say under the pointer stands in the key.
    #read(place) {
        const { series } = this.picture;
        [...this.key.children].forEach((item, number) => {
            const value = place === null || place === undefined ? null : series[number].values[place];
            item.lastChild.textContent = value === null ? "" : ` ${atMost(value, 4)}`;
        });
    }
}
