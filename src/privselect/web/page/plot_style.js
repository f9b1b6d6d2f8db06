// Line styles. The colours are distinct for colour-blind readers (Okabe and Ito), and the dashes differ without colour.

export const LIGHT = {
    ink: "#1d2329", faint: "#5b6670", grid: "#e9e7e1", paper: "#ffffff", mark: "#0b5a86",
    exact: "#000000", paper_bound: "#00805d", renyi: "#c65400", composition: "#767676", base: "#767676", lower: "#0072b2",
};

export const DARK = {
    ink: "#e8eaec", faint: "#a3adb6", grid: "#2a3138", paper: "#171b1f", mark: "#7cc7f2",
    exact: "#ffffff", paper_bound: "#36cfa3", renyi: "#f5914a", composition: "#a0a0a0", base: "#a0a0a0", lower: "#56b4e9",
};

export const LINES = {
    exact: { colour: "exact", width: 2.2, dash: [] },
    exact_lower: { colour: "lower", width: 1.2, dash: [3, 3] },
    paper: { colour: "paper_bound", width: 1.6, dash: [6, 2.4, 1.6, 2.4] },
    renyi: { colour: "renyi", width: 1.6, dash: [3.2, 2] },
    composition: { colour: "composition", width: 1.6, dash: [12, 3, 1.6, 3, 1.6, 3] },
    base: { colour: "base", width: 1.2, dash: [] },
    search: { colour: "lower", width: 1.6, dash: [6, 2.4] },
    final: { colour: "renyi", width: 1.6, dash: [3.2, 2] },
    survival: { colour: "exact", width: 2, dash: [] },
};

export const darkScheme = matchMedia("(prefers-color-scheme: dark)");

/** Returns the colours of the current scheme. */
export const palette = () => (darkScheme.matches ? DARK : LIGHT);
