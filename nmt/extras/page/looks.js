"use strict";
// A closer look at a translation: the table of attention, and the tree of the beam.

// Source words as columns, output words as rows.
function attentionTable(run, sources, { text, words, attention }) {
  if (!attention) return "The model has no attention.";
  const header = (scope, word) => make("th", { scope }, make("bdi", {}, word));
  const cell = (weight) => make(`td.w${Math.round(10 * weight)}`, {}, toPercent(weight) || "");
  const head = make("tr", {}, make("td"), ...sources.map((word) => header("col", word)));
  const rows = attention.map((row, i) => {
    return make("tr", {}, header("row", words[i].text), ...row.map(cell));
  });
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  const label = `Attention in percent, ${run.name}: ${text}`;
  return make("div.scroll", { tabIndex: 0, role: "region", ariaLabel: label }, table);
}

// The tree of a beam: a column for each step, in it a row for each beginning.
function drawTree(nodes, run) {
  const hasPieces = nodes.some(({ text }) => /^▁./.test(text)); // "▁" begins a word
  const piece = (text) => (text.startsWith("▁") ? text.slice(1) || "▁" : `+${text}`);
  const readable = (text) => (hasPieces ? piece(text) : text.replaceAll("￭", "+"));
  for (const node of nodes) node.best = node.rank ?? nodes.length; // the best that it leads to
  for (const { parent, best } of nodes.toReversed()) {
    if (parent !== null) nodes[parent].best = Math.min(best, nodes[parent].best);
  }
  const heights = []; // rows of each column
  const boxes = nodes.map((node) => {
    const parent = nodes[node.parent];
    node.column = parent ? parent.column + 1 : 0;
    node.row = heights[node.column] ?? 0;
    heights[node.column] = node.row + 1;
    const label = node.text === "<eos>" ? "(end)" : readable(node.text);
    const title = make("b", {}, node.rank === null ? label : `${node.rank + 1}. ${label}`);
    const box = make("div", {}, title, make("small", {}, percent(node.probability)));
    box.style.gridArea = `${node.row + 1} / ${node.column + 1}`;
    const fall = parent ? node.row - parent.row : 0; // in rows, from its parent
    box.style.setProperty("--fall", Math.abs(fall));
    if (parent) box.classList.add(fall < 0 ? "up" : "down");
    if (node.ends) box.classList.add("end");
    if (node.best === 0) box.classList.add("best");
    if (node.best === nodes.length) box.classList.add("dropped");
    return box;
  });
  const label = `Tree of the beam, ${run.name}: ${nodes.length} nodes in ${heights.length} steps`;
  return make("div.scroll.tree", { tabIndex: 0, role: "region", ariaLabel: label }, ...boxes);
}
