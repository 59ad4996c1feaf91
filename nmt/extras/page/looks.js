"use strict";
// A closer look at a translation: tables of words, and the tree of the beam.

// Source words as columns, output words as rows. full: the value of the darkest shade; peaks: rows
// of which the largest value is framed.
function shadedTable(label, sources, words, values, full, peaks = []) {
  const header = (scope, word) => make("th", { scope }, make("bdi", {}, word));
  const cell = (value, isPeak) => {
    const shade = Math.max(0, Math.min(10, Math.round((10 * value) / full)));
    const text = value.toFixed(full < 10 ? 1 : 0);
    const shown = Number(text) ? text.replace("-", "−") : "";
    return make(`td.w${shade}`, { title: isPeak ? "most attention" : "" }, shown);
  };
  const head = make("tr", {}, make("td"), ...sources.map((word) => header("col", word)));
  const rows = values.map((row, i) => {
    const peak = peaks[i]?.indexOf(Math.max(...peaks[i]));
    const cells = row.map((value, column) => cell(value, column === peak));
    return make("tr", {}, header("row", words[i].text), ...cells);
  });
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div.scroll", { tabIndex: 0, role: "region", ariaLabel: label }, table);
}

// The tree of a beam: a column for each step, in it a row for each beginning.
function drawTree(nodes, run) {
  const hasPieces = nodes.some(({ text }) => /^▁./.test(text)); // "▁" begins a word
  const piece = (text) => (text.startsWith("▁") ? text.slice(1) || "▁" : `+${text}`);
  const readable = (text) => (hasPieces ? piece(text) : text.replaceAll("￭", "+"));
  const heights = []; // rows of each column
  for (const node of nodes) {
    node.column = node.parent === null ? 0 : nodes[node.parent].column + 1;
    node.row = heights[node.column] ?? 0;
    heights[node.column] = node.row + 1;
    node.best = node.rank ?? nodes.length; // the best rank that it leads to
  }
  for (const { parent, best } of nodes.toReversed()) {
    if (parent !== null) nodes[parent].best = Math.min(best, nodes[parent].best);
  }
  const boxes = nodes.map(({ text, rank, parent, column, row, best, ends, probability }) => {
    const label = text === "<eos>" ? "(end)" : readable(text);
    const title = make("b", {}, rank === null ? label : `${rank + 1}. ${label}`);
    const box = make("div", {}, title, make("small", {}, percent(probability)));
    box.style.gridArea = `${row + 1} / ${column + 1}`;
    const fall = parent === null ? 0 : row - nodes[parent].row; // in rows, from its parent
    box.style.setProperty("--fall", Math.abs(fall));
    if (parent !== null) box.classList.add(fall < 0 ? "up" : "down");
    if (ends) box.classList.add("end");
    if (best === 0) box.classList.add("best");
    if (best === nodes.length) box.classList.add("dropped");
    return box;
  });
  const label = `Tree of the beam, ${run.name}: ${nodes.length} nodes in ${heights.length} steps`;
  return make("div.scroll.tree", { tabIndex: 0, role: "region", ariaLabel: label }, ...boxes);
}
