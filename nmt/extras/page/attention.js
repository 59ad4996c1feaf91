"use strict";
// Pointing at a word shows its attention. The script reads the weights from the table, which also works without it.

const HINT = "Point at a word, tap it, or use Tab and the arrow keys.";
const MAX_WORDS_LISTED = 4; // in the line below the words

function addAttention(figure) {
  const lines = ["source", "output"].map((name) => [...figure.querySelectorAll(`.${name} button`)]);
  const rows = [...figure.querySelectorAll("tbody tr")];
  const weights = rows.map((row) => [...row.cells].slice(1).map((cell) => Number(cell.textContent)));
  const status = figure.querySelector(".status");
  let selected = null; // the word that was tapped or focused: shown again when the mouse leaves another word

  function clear() {
    for (const word of lines.flat()) {
      word.className = "";
      delete word.dataset.percent;
    }
    status.textContent = figure.dataset.hint ?? HINT;
  }

  function show(side, index) {
    clear();
    const chosen = lines[side][index];
    chosen.className = "chosen";
    const others = lines[1 - side].map((word, other) => {
      const percent = side ? weights[index][other] : weights[other][index];
      const shade = Math.round(percent / 10);
      if (shade) word.className = `w${shade}`;
      if (percent) word.dataset.percent = percent;
      return { text: word.textContent, percent };
    });
    const highest = others.filter(({ percent }) => percent).sort((a, b) => b.percent - a.percent).slice(0, MAX_WORDS_LISTED);
    const list = highest.map(({ text, percent }) => `“${text}” ${percent} %`).join(", ") || "nothing";
    status.textContent = `“${chosen.textContent}” ${side ? "attends to" : "is attended to by"} ${list}`;
  }

  function restore() {
    if (selected) show(...selected);
    else clear();
  }

  function move(side, index, event) {
    const target = { ArrowLeft: [side, index - 1], ArrowRight: [side, index + 1], ArrowUp: [0, index], ArrowDown: [1, index] }[event.key];
    if (!target) return;
    event.preventDefault();
    const line = lines[target[0]];
    line[Math.max(0, Math.min(target[1], line.length - 1))].focus();
  }

  lines.forEach((line, side) => line.forEach((word, index) => {
    const select = () => {
      for (const other of line) other.tabIndex = -1; // Tab stops once in each line
      word.tabIndex = 0;
      selected = [side, index];
      show(side, index);
    };
    word.tabIndex = index ? -1 : 0;
    word.addEventListener("mouseenter", () => show(side, index));
    word.addEventListener("mouseleave", restore);
    word.addEventListener("focus", select);
    word.addEventListener("click", select); // Safari does not focus a button on click
    word.addEventListener("keydown", (event) => move(side, index, event));
  }));
  clear();
}

const figures = [...document.querySelectorAll("figure.attention")];
figures.forEach(addAttention);

// One table is open; several are closed on the screen and open on paper.
const tables = figures.map((figure) => figure.querySelector("details"));
if (tables.length > 1) for (const table of tables) table.open = false;
let closed = [];
addEventListener("beforeprint", () => {
  closed = tables.filter((table) => !table.open);
  for (const table of closed) table.open = true;
});
addEventListener("afterprint", () => {
  for (const table of closed) table.open = false;
});
