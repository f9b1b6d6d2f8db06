// Files to download, and text for the clipboard.

import { draw } from "./charts.js";
import { LIGHT, LINES } from "./plot_style.js";

/** Downloads a file. */
export function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Copies a text, or selects it on the page if the browser refuses. Returns a short status. */
export async function copy(text, shownIn) {
    try {
        await navigator.clipboard.writeText(text);
        return "Copied";
    } catch {
        if (!shownIn) return "Copy it from the address bar";
        getSelection().selectAllChildren(shownIn);
        return "Selected";
    }
}

/** Returns all curves as one table in long format. */
export function csv(specs) {
    const rows = ["chart,curve,x,y"];
    for (const { name, xs, curves, swapped, marks, note } of specs) {
        if (note) continue;
        const add = (curve, x, y) => y !== null && x !== null && rows.push([name, curve, ...(swapped ? [y, x] : [x, y])].join(","));
        for (const [curve, values] of Object.entries(curves)) if (values !== xs) xs.forEach((x, index) => add(curve, x, values[index]));
        for (const { x, y } of marks) add("question", x, y);
    }
    return new Blob([rows.join("\n"), "\n"], { type: "text/csv" });
}

const [WIDTH, CHART_HEIGHT, MARGIN, SCALE] = [1280, 380, 48, 2];
const TITLE_HEIGHT = 84; // of a chart, with its key
const FONT_FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
const MONOSPACE = "ui-monospace, 'Liberation Mono', monospace";

/** Returns an image of the three charts, with the answer above and the question as text below. */
export async function png(sentence, proof, questionText, specs, titles) {
    const canvas = document.createElement("canvas");
    const pen = canvas.getContext("2d");
    const shown = specs.filter((spec) => !spec.note);
    const half = (WIDTH - 3 * MARGIN) / 2;
    const above = wrap(pen, `600 30px ${FONT_FAMILY}`, sentence, WIDTH - 2 * MARGIN);
    const below = wrap(pen, `15px ${MONOSPACE}`, questionText, WIDTH - 2 * MARGIN).slice(0, 6);
    const top = MARGIN + 40 * above.length + 44;
    const firstRow = shown.some(({ name }) => name === "mean") ? CHART_HEIGHT + TITLE_HEIGHT : 0;
    const secondRow = shown.some(({ name }) => name !== "mean") ? CHART_HEIGHT + TITLE_HEIGHT : 0;
    canvas.width = SCALE * WIDTH;
    canvas.height = SCALE * (top + firstRow + secondRow + 24 * below.length + MARGIN);
    pen.scale(SCALE, SCALE);
    pen.fillStyle = LIGHT.paper;
    pen.fillRect(0, 0, WIDTH, canvas.height);
    writeLines(pen, `600 30px ${FONT_FAMILY}`, LIGHT.ink, above, MARGIN, MARGIN + 24, 40);
    writeLines(pen, `17px ${FONT_FAMILY}`, LIGHT.faint, [proof], MARGIN, top - 22, 24);
    let left = MARGIN;
    for (const spec of shown) {
        const isWide = spec.name === "mean";
        const [x, y] = [isWide ? MARGIN : left, isWide ? top : top + firstRow];
        await drawChart(pen, spec, spec.title ?? titles[spec.name], x, y, isWide ? WIDTH - 2 * MARGIN : half);
        if (!isWide) left += half + MARGIN;
    }
    writeLines(pen, `15px ${MONOSPACE}`, LIGHT.faint, below, MARGIN, top + firstRow + secondRow + 20, 24);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function drawChart(pen, spec, title, x, y, width) {
    writeLines(pen, `600 18px ${FONT_FAMILY}`, LIGHT.ink, [title], x, y + 22, 0);
    pen.font = `13px ${FONT_FAMILY}`;
    let at = x;
    for (const { name, label } of spec.series) {
        const { colour, width: lineWidth, dash } = LINES[name];
        pen.strokeStyle = LIGHT[colour];
        pen.lineWidth = lineWidth;
        pen.setLineDash(dash);
        pen.beginPath();
        pen.moveTo(at, y + 44);
        pen.lineTo(at + 26, y + 44);
        pen.stroke();
        pen.setLineDash([]);
        pen.fillStyle = LIGHT.faint;
        pen.fillText(label, at + 32, y + 48);
        at += 32 + pen.measureText(label).width + 20;
    }
    const box = document.createElement("div");
    box.className = "visually-hidden";
    document.body.append(box);
    const plot = draw(box, spec, LIGHT, width, CHART_HEIGHT);
    await new Promise((resolve) => setTimeout(resolve)); // uPlot draws after the current task
    pen.drawImage(plot.ctx.canvas, x, y + 58, width, CHART_HEIGHT);
    plot.destroy();
    box.remove();
}

function writeLines(pen, font, colour, lines, x, y, leading) {
    pen.font = font;
    pen.fillStyle = colour;
    lines.forEach((text, index) => pen.fillText(text, x, y + index * leading));
}

function wrap(pen, font, text, width) {
    pen.font = font;
    const lines = [""];
    for (const word of text.split(/(?<=[\s,])/)) {
        if (pen.measureText(lines.at(-1) + word.trimEnd()).width > width) lines.push("");
        lines[lines.length - 1] += word;
    }
    return lines;
}
