"use strict";
// Pointing at a word shows its attention.

const MAX_WORDS_LISTED = 4; // in the line below the words

// figure: has the words, and a table of weights in percent, a row for each word of the output.
// hint: the line below while no word is chosen.
function addAttention(figure, hint = "") {
  const rows = [...figure.querySelectorAll("tbody tr")].map((row) => [...row.cells].slice(1));
  const weights = rows.map((cells) => cells.map(({ textContent }) => Number(textContent)));
  const lines = ["source", "output"].map((name) => [...figure.querySelectorAll(`.${name} button`)]);
  const status = figure.querySelector(".status");
  let selected = null; // the place of the word that was tapped or focused: [side, index]

  function show(place) {
    for (const word of lines.flat()) {
      word.className = "";
      delete word.dataset.percent;
    }
    status.textContent = hint;
    if (!place) return;
    const [side, index] = place;
    const weightOf = (other) => (side ? weights[index][other] : weights[other][index]);
    const all = lines[1 - side].map((word, other) => ({ word, percent: weightOf(other) }));
    const others = all.filter(({ percent }) => percent).sort((a, b) => b.percent - a.percent);
    for (const { word, percent } of others) {
      word.className = percent < 5 ? "" : `w${Math.round(percent / 10)}`;
      word.dataset.percent = percent;
    }
    const listed = others.slice(0, MAX_WORDS_LISTED);
    const list = listed.map(({ word, percent }) => `“${word.textContent}” ${percent} %`);
    const chosen = lines[side][index];
    chosen.className = "chosen";
    const verb = side ? "attends to" : "is attended to by";
    status.textContent = `“${chosen.textContent}” ${verb} ${list.join(", ") || "nothing"}`;
  }

  function select(side, index) {
    selected = [side, index];
    show(selected);
    lines[side].forEach((word, i) => (word.tabIndex = i === index ? 0 : -1));
  }

  function move(side, index, event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 0, ArrowDown: 0 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const line = lines[step ? side : Number(event.key === "ArrowDown")];
    line[Math.max(0, Math.min(index + step, line.length - 1))].focus();
  }

  lines.forEach((line, side) => {
    line.forEach((word, index) => {
      word.tabIndex = index ? -1 : 0; // Tab stops once in each line
      word.addEventListener("mouseenter", () => show([side, index]));
      word.addEventListener("mouseleave", () => show(selected));
      word.addEventListener("focus", () => select(side, index));
      word.addEventListener("click", () => select(side, index)); // Safari does not focus it
      word.addEventListener("keydown", (event) => move(side, index, event));
    });
  });
  show(selected);
}

const figures = [...document.querySelectorAll("figure.attention")];
for (const figure of figures) {
  addAttention(figure, "Point at a word, tap it, or use Tab and the arrow keys.");
  figure.querySelector("details").open = figures.length === 1;
}
