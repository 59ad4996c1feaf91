"use strict";
// Translates while the user types. Words, attention and their keys come from page.js, which this page shares with the reports.
// request.js has `isServer` and `request(path, body, signal)`.

const TYPING_PAUSE = 250; // milliseconds without a key until the text is translated
const READING_PAUSE = 900; // until a screen reader reads the translation
const DOUBTFUL = 0.3; // words of a lower probability are marked
const UNSURE = 0.5; // translations of a lower confidence are marked
const NEEDED = 0.1; // nats; a source word of a smaller loss does not matter
const [TREE_ROW, TREE_BOX, TREE_GAP] = [48, 40, 28]; // pixels: from row to row, the height of a node, between columns
const TRANSLATIONS = 5; // of a line, if the beam is that wide

const byId = (id) => document.getElementById(id);
const [source, direction, results, problem, announcement, terms] = ["source", "direction", "results", "problem", "announcement", "terms"].map(byId);
let runs = [];
let articles = new Map(); // name of a run -> its article
let typingTimer, readingTimer, waiting;

// An element with attributes, event listeners that start with "on", and children.
function make(name, attributes = {}, ...children) {
  const element = name.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

// What is wrong, in words. A server may ask for its token.
function inWords(error) {
  if (error.status === 401) byId("token").hidden = false;
  return error.message;
}

function report(error) {
  if (error.name === "AbortError") return;
  problem.textContent = inWords(error);
  if (error.seconds) typingTimer = setTimeout(update, error.seconds * 1000);
}

// What `request` waits for, where that takes long.
function showProgress(text) {
  byId("progress").textContent = text;
}

function percent(probability) {
  return probability < 0.01 ? "under 1 %" : `${Math.round(probability * 100)} %`;
}

// --- The page

async function start() {
  if (isServer) useServer();
  try {
    runs = await request("/runs");
  } catch (error) {
    report(error);
    return;
  }
  problem.textContent = "";
  const pairs = [...new Set(runs.map((run) => `${run.source} ${run.target}`))];
  const names = (pair) => pair.split(" ").map(languageName).join(" → ");
  direction.replaceChildren(...pairs.map((pair) => make("option", { value: pair }, names(pair))));
  direction.hidden = pairs.length < 2;
  const linked = new URLSearchParams(location.hash.slice(1));
  const pair = `${linked.get("from")} ${linked.get("to")}`;
  if (pairs.includes(pair)) direction.value = pair;
  source.value = linked.get("q") ?? source.value;
  choose();
}

// A link to this text.
function addressOfText() {
  const [from, to] = direction.value.split(" ");
  return `#${new URLSearchParams({ q: source.value, ...(direction.hidden ? {} : { from, to }) })}`;
}

function useServer() {
  const linked = new URLSearchParams(location.hash.slice(1));
  if (linked.has("token")) {
    sessionStorage.setItem("token", linked.get("token"));
    linked.delete("token"); // nobody shall copy it with the address
    history.replaceState(null, "", location.pathname + (String(linked) && `#${linked}`));
  }
  byId("example").textContent =
    `curl ${location.origin}/translate -H 'Content-Type: application/json' \\\n  -d '{"q": "How are you?", "alternatives": 2}'`;
}

function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

// Show the runs of the chosen languages.
function choose() {
  const chosen = runs.filter((run) => `${run.source} ${run.target}` === direction.value);
  const [from, to] = direction.value.split(" ");
  source.lang = from;
  byId("source-label").textContent = `Text in ${languageName(from)}, to translate into ${languageName(to)}`;
  if (isServer) terms.value = localStorage.getItem(`terms ${direction.value}`) ?? "";
  document.title = `Translate ${languageName(from)} to ${languageName(to)}`;
  articles = new Map(chosen.map((run) => [run, make("article", { class: "run", "aria-label": `Translation by ${run.name}` })]));
  results.replaceChildren(...articles.values());
  update();
}

function update() {
  clearTimeout(typingTimer);
  waiting?.abort();
  waiting = new AbortController();
  problem.textContent = "";
  const lines = source.value.split("\n");
  const glossary = readTerms();
  for (const [run, article] of articles) {
    if (source.value.trim()) translate(run, article, { q: lines, glossary }, waiting.signal);
    else article.replaceChildren();
  }
}

async function translate(run, article, fields, signal) {
  article.setAttribute("aria-busy", "true");
  try {
    const body = { ...fields, run: run.name, details: true, alternatives: Math.min(run.translations, TRANSLATIONS) - 1 };
    const answer = await request("/translate", body, signal);
    const lines = answer.lines.filter((line) => line.translations.length);
    const Part = lines.some((line) => line.sentences) ? Paragraph : Line;
    const figures = lines.map((line) => new Part(run, line).figure);
    article.replaceChildren(heading(run, article), ...figures);
    announce();
  } catch (error) {
    report(error);
  } finally {
    if (!signal.aborted) article.removeAttribute("aria-busy");
  }
}

function heading(run, article) {
  const copy = make("button", { type: "button", class: "plain", onclick: () => navigator.clipboard.writeText(textOf(article)).then(
    () => { copy.textContent = "Copied"; },
    () => { copy.textContent = "Not copied"; },
  ) }, "Copy");
  const link = make("a", { href: addressOfText(), title: "the address of this text" }, "Link");
  const title = make("h2", {}, articles.size > 1 ? run.name : languageName(run.target));
  return make("header", {}, title, make("span", {}, link, " ", navigator.clipboard ? copy : ""));
}

function textOf(article) {
  return [...article.querySelectorAll(":scope > [data-text]")].map((figure) => figure.dataset.text).join("\n");
}

// For screen readers: once, when the typing has stopped.
function announce() {
  clearTimeout(readingTimer);
  readingTimer = setTimeout(() => {
    announcement.textContent = [...articles.values()].map(textOf).join("\n");
  }, READING_PAUSE);
}

// --- Terms and files

// The terms, source -> target. Lines that are none are named.
function readTerms() {
  if (!isServer) return {};
  const lines = terms.value.split("\n").map((line) => line.split(/[=\t]/).map((part) => part.trim()));
  const pairs = lines.filter((parts) => parts.length === 2 && parts.every(Boolean));
  const wrong = lines.flatMap((parts, index) => (pairs.includes(parts) || parts.join("") === "" ? [] : [index + 1]));
  byId("terms-note").textContent = wrong.length ? `Not used: line ${wrong.join(", ")}. Write: word = translation` : "";
  byId("terms-title").textContent = pairs.length ? `Terms (${pairs.length})` : "Terms";
  return Object.fromEntries(pairs);
}

async function translateFile(file) {
  const state = make("p", { role: "status" }, make("progress", { "aria-label": `Translating ${file.name}` }), " Translating…");
  const article = make("article", { class: "file", "aria-label": file.name }, make("h2", {}, make("bdi", {}, file.name)), state);
  byId("files").prepend(article);
  const form = new FormData();
  form.append("file", file);
  form.append("run", articles.keys().next().value.name);
  form.append("glossary", JSON.stringify(readTerms()));
  try {
    const answer = await request("/translate_file", form);
    const path = new URL(answer.translatedFileUrl).pathname; // the server may not know under which name it is reached
    state.replaceChildren(make("a", { href: path, download: "" }, "Download the translation"), " (for 10 minutes)");
    const notes = answer.warnings.map((text) => make("li", {}, text));
    if (notes.length) article.append(make("details", { open: notes.length < 4 }, make("summary", {}, `Warnings: ${notes.length}`), make("ul", {}, ...notes)));
  } catch (error) {
    state.replaceChildren(make("span", { class: "warning" }, inWords(error)));
  }
}

async function translateFiles(files) {
  if (articles.size) for (const file of files) await translateFile(file); // one after the other: others wait, too
}

// --- A line of text and its translations

// Where lines have several sentences, they are read as text. The sentence that is chosen shows its words below.
class Paragraph {
  constructor(run, line) {
    this.text = make("p", { class: "text", lang: run.target, dir: "auto" });
    this.panel = make("div");
    this.figure = make("section", {}, ...warningsOf(line.warnings), this.text, this.panel);
    let rest = line.translations[0].text;
    for (const sentence of (line.sentences ?? [line]).filter(({ translations }) => translations.length)) {
      const { text } = sentence.translations[0];
      const start = rest.indexOf(text);
      if (start < 0) continue; // it cannot be told from the others: it is only text
      this.text.append(rest.slice(0, start), this.sentence(run, sentence));
      rest = rest.slice(start + text.length);
    }
    this.text.append(rest);
    this.figure.dataset.text = this.text.textContent;
  }

  // A button, but one that breaks into lines as text does.
  sentence(run, sentence) {
    const button = make("span", { role: "button", tabindex: "0", "aria-expanded": "false", onclick: () => this.open(button, line), onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
    } });
    const line = new Line(run, sentence, ({ text, confidence }) => {
      const mark = isUnsure(confidence) && "doubtful";
      const description = mark && `low confidence, ${percent(confidence)}`;
      button.replaceChildren(make("span", { "data-mark": mark, title: description, "aria-description": description }, text));
      this.figure.dataset.text = this.text.textContent;
    });
    return button;
  }

  open(button, line) {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    for (const other of this.text.querySelectorAll("[aria-expanded]")) other.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-expanded", String(!isOpen));
    this.panel.replaceChildren(...(isOpen ? [] : [line.figure]));
  }
}

// A sentence and its translations. changed: called with each translation that is shown.
class Line {
  constructor(run, line, changed = () => {}) {
    Object.assign(this, { run, line, changed, opened: new Set() });
    this.figure = make("figure", { class: "attention", "data-hint": "" });
    this.show(line.translations[0]);
  }

  show(translation, warnings = this.line.warnings) {
    this.shown = translation;
    this.figure.dataset.text = translation.text;
    this.changed(translation);
    const { attention } = translation;
    const sources = [...this.line.src_words, "(end)"];
    this.words = translation.words.map((word) => this.wordButton(word));
    this.panel = make("div");
    this.figure.replaceChildren(
      ...warningsOf(warnings),
      attention ? group("source", "Source", this.run.source, sources.map((word) => make("button", { type: "button" }, make("bdi", {}, word)))) : "",
      group("output", "Translation", this.run.target, this.words),
      attention ? make("p", { class: "status", role: "status" }) : "",
      this.panel,
      ...notes(translation),
      ...this.others(),
      make("div", { class: "looks" },
        attention ? this.look("Attention in percent", weightTable(sources, translation, this.run)) : "",
        this.look("Without each word", "…", () => this.without(translation)),
        this.look("Tree of the beam", "…", () => this.tree())),
    );
    if (attention) addAttention(this.figure);
  }

  // A part that is closed at first. load: finds its content when it is opened.
  look(title, content, load) {
    const part = make("div", {}, content);
    const fill = async () => part.replaceChildren(...await load().catch((error) => [make("p", { class: "warning" }, inWords(error))]));
    return make("details", { open: this.opened.has(title), ontoggle: ({ target }) => {
      this.opened[target.open ? "add" : "delete"](title);
      if (target.open && load) fill();
    } }, make("summary", {}, title), part);
  }

  // How much each word of a translation depends on each source word.
  async without({ text, words, tokens, attention }) {
    const { losses } = await request("/without", { q: this.line.source, run: this.run.name, tokens });
    const sources = this.line.src_words;
    if (!losses.length) return ["The source has only one word: there is nothing to leave out."];
    if (losses.length !== sources.length) throw new Error("The source words are unclear.");
    const ends = [...words.slice(1).map((word) => word.token), tokens.length];
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    const rows = words.map((word, row) => losses.map((ofTokens) => sum(ofTokens.slice(word.token, ends[row]))));
    const cells = rows.map((row, index) => row.map((loss, column) => ({
      text: Math.abs(loss) < 0.05 ? "" : loss.toFixed(1).replace("-", "−"),
      shade: Math.max(0, Math.min(10, Math.round(loss * 2))),
      isPeak: attention !== null && column === peak(attention[index]),
    })));
    const table = shadedTable(`Nats without each source word, ${this.run.name}: ${text}`, sources, words, cells);
    const explanation = `How much less probable each word becomes, in nats, when the source word above it is left out: 0.7 is half as probable,
      2.3 a tenth.${attention ? " A frame marks the source word with the most attention." : ""}`;
    const comparison = attention ? compare(rows, attention, words, [...sources, "(end)"]) : [];
    return [table, make("p", { class: "notes" }, explanation), ...comparison];
  }

  async tree() {
    const { nodes } = await request("/tree", { q: this.line.source, run: this.run.name });
    const explanation = `What the beam kept at each step, from left to right, the most probable at the top. Thick: the best translation.
      Dashed: dropped later. Round, with a number: the best that ended. +: no space before.`;
    return [drawTree(nodes, this.run), make("p", { class: "notes" }, explanation)];
  }

  wordButton(word) {
    const mark = word.origin !== "model" ? "replaced" : word.probability < DOUBTFUL ? "doubtful" : undefined;
    const description = mark === "replaced" ? "replaced unknown word" : mark && `doubtful, ${percent(word.probability)}`;
    const attributes = { type: "button", "data-mark": mark, title: description, "aria-description": description, "aria-expanded": "false" };
    const button = make("button", { ...attributes, onclick: () => this.open(word, button) }, make("bdi", {}, word.text));
    return button;
  }

  // The other translations of the beam; after a change also the one that was best.
  others() {
    const others = this.line.translations.filter((other) => other.text !== this.shown.text);
    if (!others.length) return [];
    const list = others.map((other) => make("li", {}, make("button", { type: "button", lang: this.run.target, dir: "auto", onclick: () => {
      this.show(other);
      this.words[0]?.focus();
      announce();
    } }, difference(other.text, this.shown.text))));
    return [make("details", { open: true }, make("summary", {}, "Other translations"), make("ul", { class: "choices" }, ...list))];
  }

  // The words that could stand in place of a word.
  async open(word, button) {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    this.close();
    if (isOpen) return;
    button.setAttribute("aria-expanded", "true");
    const title = make("h3", {}, "In place of ", make("bdi", {}, `“${word.text}”`));
    const list = make("ul", { class: "choices" }, make("li", {}, "…"));
    const message = make("p", { class: "notes", role: "status" });
    const field = make("input", { "aria-label": "Another word", placeholder: "another word", lang: this.run.target, dir: "auto", autocomplete: "off" });
    const close = make("button", { type: "button", class: "plain", onclick: () => { this.close(); button.focus(); } }, "Close");
    const form = make("form", { onsubmit: (event) => { event.preventDefault(); this.force(word, field.value, message); } },
      field, make("button", { class: "plain" }, "Use"));
    const panel = make("div", { class: "panel", role: "group", "aria-label": `In place of ${word.text}`, onkeydown: (event) => {
      if (event.key === "Escape") close.click();
    } }, make("header", {}, title, close), list, message, form);
    this.panel.replaceChildren(panel);
    try {
      const tokens = this.shown.tokens.slice(0, word.token);
      const { alternatives } = await request("/alternatives", { q: this.line.source, run: this.run.name, tokens });
      list.replaceChildren(...alternatives.map((alternative) => this.choice(word, alternative)));
      const texts = [alternatives.length > 1 ? "" : "The model knows no other word for this place.", Object.keys(readTerms()).length ? "Terms are not used here." : ""];
      message.textContent ||= texts.join(" ").trim(); // a word may have been typed meanwhile, and refused
    } catch (error) {
      list.replaceChildren();
      message.textContent = `There are no alternatives: ${inWords(error)}`;
    }
    panel.scrollIntoView({ block: "nearest" });
  }

  choice(word, { word: text, probability, translation, warnings }) {
    const isShown = translation.text === this.shown.text;
    const rest = translation.words.slice(this.shown.words.indexOf(word) + 1).map((each) => each.before + each.text).join("");
    return make("li", {}, make("button", { type: "button", lang: this.run.target, dir: "auto", "aria-current": isShown && "true", onclick: () => {
      this.replace(word, translation, warnings);
    } }, make("span", {}, make("strong", {}, text), make("small", {}, rest)), make("small", {}, percent(probability))));
  }

  // Start the translation with the words before `word` and the typed text.
  async force(word, typed, message) {
    if (!typed.trim()) return;
    const before = this.shown.words.slice(0, this.shown.words.indexOf(word)).map((each) => each.before + each.text).join("");
    const body = { q: [this.line.source], run: this.run.name, details: true, prefix: `${before} ${typed}`.trim() };
    try {
      const { lines } = await request("/translate", body);
      this.replace(word, lines[0].translations[0], lines[0].warnings);
    } catch (error) {
      message.textContent = inWords(error);
    }
  }

  // Show a translation in which another word stands in place of `word`, and stay at this place.
  replace(word, translation, warnings) {
    const index = this.shown.words.indexOf(word);
    this.show(translation, warnings);
    this.words[Math.min(index, this.words.length - 1)]?.focus();
    announce();
  }

  close() {
    for (const button of this.words) button.setAttribute("aria-expanded", "false");
    this.panel.replaceChildren();
  }
}

function group(side, label, lang, buttons) {
  const words = buttons.map((button) => button.textContent).join(" ");
  const dir = /^\P{L}*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/u.test(words) ? "rtl" : "ltr"; // "auto" ignores what is in <bdi>
  return make("div", { class: `words ${side}`, role: "group", "aria-label": label, lang, dir }, ...buttons);
}

function warningsOf(warnings) {
  return warnings.map((warning) => make("p", { class: "warning" }, `Probably wrong: ${warning}.`));
}

function isUnsure(confidence) {
  return confidence !== null && confidence < UNSURE; // null: the run does not know its confidence
}

// The marks in words.
function notes({ words, complete, replaced, confidence }) {
  const doubtful = words.filter((word) => word.origin === "model" && word.probability < DOUBTFUL);
  const texts = [];
  if (doubtful.length) texts.push(`Doubtful: ${doubtful.map((word) => `“${word.text}” ${percent(word.probability)}`).join(", ")}.`);
  const origins = { copied: "copied from the source", lexicon: "from the lexicon", "left out": "left out" };
  const unknown = replaced.filter(({ origin }) => origin !== "glossary");
  for (const { token, origin } of unknown) texts.push(`Unknown word, ${origins[origin]}${token ? `: “${token}”` : ""}.`);
  if (!complete) texts.push("Cut at the maximum length.");
  if (confidence >= UNSURE) texts.push(`Confidence ${percent(confidence)}.`);
  const unsure = isUnsure(confidence) ? [make("p", { class: "warning" }, `Low confidence, ${percent(confidence)}: check this translation.`)] : [];
  return texts.length ? [...unsure, make("p", { class: "notes" }, texts.join(" "))] : unsure;
}

// A text with the words in bold that differ from another text: all between the first and the last difference.
function difference(text, other) {
  const [words, others] = [text, other].map((each) => each.split(" "));
  let first = 0;
  while (first < Math.min(words.length, others.length) && words[first] === others[first]) first++;
  let last = 0;
  while (last < Math.min(words.length, others.length) - first && words.at(-1 - last) === others.at(-1 - last)) last++;
  const [before, middle, after] = [words.slice(0, first), words.slice(first, words.length - last), words.slice(words.length - last)];
  const parts = [before.join(" "), middle.length ? make("strong", {}, middle.join(" ")) : "", after.join(" ")];
  return make("span", {}, ...parts.filter((part) => part !== "").flatMap((part, index) => (index ? [" ", part] : [part])));
}

// page.js reads the weights from this table.
function weightTable(sources, { text, words, attention }, run) {
  const cells = attention.map((row) => row.map((weight) => ({
    text: weight < 0.005 ? "" : String(Math.round(weight * 100)),
    shade: Math.round(weight * 10),
  })));
  return shadedTable(`Attention in percent, ${run.name}: ${text}`, sources, words, cells);
}

// Source words as columns, output words as rows; a shade from 0 to 10 for each cell.
function shadedTable(label, sources, words, cells) {
  const head = make("tr", {}, make("td"), ...sources.map((word) => make("th", { scope: "col" }, make("bdi", {}, word))));
  const cell = ({ text, shade, isPeak = false }) =>
    make("td", { class: shade ? `w${shade}` : false, "data-peak": isPeak, title: isPeak && "most attention" }, text);
  const rows = words.map((word, row) => make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, word.text)), ...cells[row].map(cell)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

function peak(values) {
  return values.indexOf(Math.max(...values));
}

// Where attention and the losses name different source words.
function compare(losses, attention, words, sources) {
  const differences = words.flatMap((word, row) => {
    const [attended, needed] = [peak(attention[row]), peak(losses[row])];
    const isNeeded = losses[row][needed] >= NEEDED;
    if (attended === needed && isNeeded) return [];
    const other = isNeeded ? `most on “${sources[needed]}”` : "on no single word";
    return [make("li", {}, `“${word.text}” attends most to “${sources[attended]}”, but depends ${other}.`)];
  });
  const n = words.length;
  const count = `For ${n - differences.length} of ${n} words, the most attention and the largest figure belong to the same source word.`;
  return [make("p", { class: "notes" }, count), make("ul", { class: "notes" }, ...differences)];
}

// The tree of a beam: a column for each step, in it a row for each beginning.
function drawTree(nodes, run) {
  const hasPieces = nodes.some(({ text }) => /^▁./.test(text)); // "▁" begins a word
  const piece = (text) => (text.startsWith("▁") ? text.slice(1) || "▁" : `+${text}`);
  const readable = (text) => (text === "<eos>" ? "(end)" : hasPieces ? piece(text) : text.replaceAll("￭", "+"));
  const columns = [];
  for (const node of nodes) {
    node.column = node.parent === null ? 0 : nodes[node.parent].column + 1;
    node.top = TREE_ROW * ((columns[node.column] ??= []).push(node) - 1);
    node.label = (node.rank === null ? "" : `${node.rank + 1}. `) + readable(node.text);
    node.best = node.rank ?? nodes.length; // the best rank that it leads to
  }
  for (const { parent, best } of nodes.toReversed()) if (parent !== null) nodes[parent].best = Math.min(best, nodes[parent].best);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "bold 15px system-ui, sans-serif";
  let right = 0;
  for (const column of columns) {
    const width = Math.max(...column.map((node) => pen.measureText(node.label).width), 52) + 18;
    for (const node of column) Object.assign(node, { left: right, width });
    right += width + TREE_GAP;
  }
  const boxes = [...nodes].sort((a, b) => b.best - a.best).map(({ label, left, top, width, parent, best, ends, probability }) => {
    const [middle, half, rise] = [left + width / 2, TREE_GAP / 2, parent === null ? 0 : top - nodes[parent].top];
    const line = `M${left - TREE_GAP} ${top - rise + TREE_BOX / 2}c${half} 0 ${half} ${rise} ${TREE_GAP} ${rise}`;
    return make("svg:g", { class: best === 0 ? "best" : best === nodes.length && "dropped" },
      parent === null ? "" : make("svg:path", { d: line }),
      make("svg:rect", { x: left, y: top, width, height: TREE_BOX, rx: ends ? TREE_BOX / 2 : 6 }),
      make("svg:text", { x: middle, y: top + 17 }, label),
      make("svg:text", { x: middle, y: top + 33, class: "small" }, percent(probability)));
  });
  const [width, height] = [right - TREE_GAP + 4, TREE_ROW * Math.max(...columns.map((column) => column.length))];
  const label = `Tree of the beam, ${run.name}: ${nodes.length} beginnings in ${columns.length} steps`;
  const picture = make("svg:svg", { width, height, viewBox: `-2 -2 ${width} ${height}`, role: "img", "aria-label": label }, ...boxes);
  return make("div", { class: "scroll tree", tabindex: "0", role: "region", "aria-label": label }, picture);
}

function updateSoon(event) {
  if (event.isComposing) return;
  if (location.hash) history.replaceState(null, "", location.href.split("#")[0]); // it has another text
  clearTimeout(typingTimer);
  typingTimer = setTimeout(update, TYPING_PAUSE);
}
for (const field of [source, terms]) {
  field.addEventListener("input", updateSoon);
  field.addEventListener("compositionend", updateSoon);
}
terms.addEventListener("input", () => localStorage.setItem(`terms ${direction.value}`, terms.value));
byId("choose-file").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", ({ target }) => {
  translateFiles([...target.files]);
  target.value = ""; // the same file may be chosen again
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (!isServer || !event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", kind === "dragover");
    if (kind === "drop") translateFiles([...event.dataTransfer.files]);
  });
}
direction.addEventListener("change", choose);
addEventListener("hashchange", () => {
  if (location.hash !== addressOfText()) start();
});
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("token-field").value);
  byId("token").hidden = true;
  start();
});
if (!isServer) for (const element of document.querySelectorAll("[data-server]")) element.remove();
start();
