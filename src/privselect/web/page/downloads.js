// What leaves the page: files, and texts for the clipboard.

import { draw } from "./charts.js";
import { LIGHT, LINES } from "./looks.js";

/** Hands a file to the reader. */
export function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Copies a text; where the browser refuses, the text is selected instead. Returns what happened, in a word or two. */
export async function copy(text, shown) {
    try {
        await navigator.clipboard.writeText(text);
        return "Copied";
    } catch {
        if (!shown) return "It is in the address";
        getSelection().selectAllChildren(shown);
        return "Selected";
    }
}

/** All curves in one tidy table. */
export function csv(pictures) {
    const rows = ["chart,curve,x,y"];
    for (const { name, xs, curves, upright, marks, note } of pictures) {
        if (note) continue;
        const add = (curve, x, y) => y !== null && x !== null && rows.push([name, curve, ...(upright ? [y, x] : [x, y])].join(","));
        for (const [curve, values] of Object.entries(curves)) if (values !== xs) xs.forEach((x, place) => add(curve, x, values[place]));
        for (const { x, y } of marks) add("asked", x, y);
    }
    return new Blob([rows.join("\n"), "\n"], { type: "text/csv" });
}

const [WIDE, CHART, MARGIN, SHARP] = [1280, 380, 48, 2];
const FACE = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";

/** The three charts on one white sheet, with the sentence above and the text forms below. */
export async function png(sentence, proof, asked, pictures, titles) {
    const canvas = document.createElement("canvas");
    const pen = canvas.getContext("2d");
    const shown = pictures.filter((picture) => !picture.note);
    const half = (WIDE - 3 * MARGIN) / 2;
    const said = wrapped(pen, `600 30px ${FACE}`, sentence, WIDE - 2 * MARGIN);
    const below = wrapped(pen, `15px ui-monospace, 'Liberation Mono', monospace`, asked, WIDE - 2 * MARGIN).slice(0, 6);
    const top = MARGIN + 40 * said.length + 44;
    const full = shown.some(({ name }) => name === "mean") ? CHART + 84 : 0;
    const others = shown.some(({ name }) => name !== "mean") ? CHART + 84 : 0;
    canvas.width = SHARP * WIDE;
    canvas.height = SHARP * (top + full + others + 24 * below.length + MARGIN);
    pen.scale(SHARP, SHARP);
    pen.fillStyle = LIGHT.paper;
    pen.fillRect(0, 0, WIDE, canvas.height);
    write(pen, `600 30px ${FACE}`, LIGHT.ink, said, MARGIN, MARGIN + 24, 40);
    write(pen, `17px ${FACE}`, LIGHT.faint, [proof], MARGIN, top - 22, 24);
    let left = MARGIN;
    for (const picture of shown) {
        const wide = picture.name === "mean";
        const [x, y] = [wide ? MARGIN : left, wide ? top : top + full];
        await place(pen, picture, titles[picture.name], x, y, wide ? WIDE - 2 * MARGIN : half);
        if (!wide) left += half + MARGIN;
    }
    write(pen, `15px ui-monospace, 'Liberation Mono', monospace`, LIGHT.faint, below, MARGIN, top + full + others + 20, 24);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function place(pen, picture, title, x, y, width) {
    write(pen, `600 18px ${FACE}`, LIGHT.ink, [title], x, y + 22, 0);
    pen.font = `13px ${FACE}`;
    let at = x;
    for (const { name, label } of picture.series) {
        const { colour, width: thick, dash } = LINES[name];
        pen.strokeStyle = LIGHT[colour];
        pen.lineWidth = thick;
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
    box.className = "unseen";
    document.body.append(box);
    const plot = draw(box, picture, LIGHT, width, CHART);
    await new Promise((resolve) => setTimeout(resolve)); // uPlot draws once this script has ended
    pen.drawImage(plot.ctx.canvas, x, y + 58, width, CHART);
    plot.destroy();
    box.remove();
}

function write(pen, font, colour, lines, x, y, leading) {
    pen.font = font;
    pen.fillStyle = colour;
    lines.forEach((text, place) => pen.fillText(text, x, y + place * leading));
}

function wrapped(pen, font, text, width) {
    pen.font = font;
    const lines = [""];
    for (const word of text.split(/(?<=[\s,])/)) {
        if (pen.measureText(lines.at(-1) + word.trimEnd()).width > width) lines.push("");
        lines[lines.length - 1] += word;
    }
    return lines;
}
