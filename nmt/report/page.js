"use strict";
// Words that show where they looked. The weights are read from the table, which is there without this script too.

const HINT = "Point at a word, tap it, or go there with Tab and the arrow keys.";
const SHOWN_AT_MOST = 4; // words named in the line below

function attention(figure) {
  const lines = ["source", "output"].map((name) => [...figure.querySelectorAll(`.${name} button`)]);
  const rows = [...figure.querySelectorAll("tbody tr")];
  const weights = rows.map((row) => [...row.cells].slice(1).map((cell) => Number(cell.textContent)));
  const looked = figure.querySelector(".looked");
  let kept = null; // the word that was tapped or focused; a mouse that leaves goes back to it

  function clear() {
    for (const word of lines.flat()) {
      word.className = "";
      delete word.dataset.percent;
    }
    looked.textContent = HINT;
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
    const most = others.filter(({ percent }) => percent).sort((a, b) => b.percent - a.percent).slice(0, SHOWN_AT_MOST);
    const told = most.map(({ text, percent }) => `“${text}” ${percent} %`).join(", ") || "nothing";
    looked.textContent = `“${chosen.textContent}” ${side ? "looked at" : "was looked at by"} ${told}`;
  }

  function restore() {
    if (kept) show(...kept);
    else clear();
  }

  function move(side, index, event) {
    const there = { ArrowLeft: [side, index - 1], ArrowRight: [side, index + 1], ArrowUp: [0, index], ArrowDown: [1, index] }[event.key];
    if (!there) return;
    event.preventDefault();
    const line = lines[there[0]];
    line[Math.max(0, Math.min(there[1], line.length - 1))].focus();
  }

  lines.forEach((line, side) => line.forEach((word, index) => {
    const keep = () => {
      for (const other of line) other.tabIndex = -1; // one stop for Tab in each line
      word.tabIndex = 0;
      kept = [side, index];
      show(side, index);
    };
    word.tabIndex = index ? -1 : 0;
    word.addEventListener("mouseenter", () => show(side, index));
    word.addEventListener("mouseleave", restore);
    word.addEventListener("focus", keep);
    word.addEventListener("click", keep); // Safari focuses no button that is clicked
    word.addEventListener("keydown", (event) => move(side, index, event));
  }));
  clear();
}

const figures = [...document.querySelectorAll("figure.attention")];
figures.forEach(attention);

// One table is a picture; many are a wall. On paper all of them are wanted again.
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
