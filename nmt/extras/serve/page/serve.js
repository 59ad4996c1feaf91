// Translates while the user types. Words, attention and their keys come from page.js, which this page shares with the reports.

const TYPING_PAUSE = 250; // milliseconds without a key until the text is translated
const READING_PAUSE = 900; // until a screen reader reads the translation
const DOUBTFUL = 0.3; // words of a lower probability are marked
const TRANSLATIONS = 5; // of a line, if the beam is that wide

const byId = (id) => document.getElementById(id);
const [source, direction, results, problem, announcement] = ["source", "direction", "results", "problem", "announcement"].map(byId);
let runs = [];
let articles = new Map(); // name of a run -> its article
let typingTimer, readingTimer, waiting;

// An element with attributes, properties that start with a dot, event listeners that start with "on", and children.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

class Refusal extends Error {
  constructor(status, text, seconds) {
    super(text);
    Object.assign(this, { status, seconds });
  }
}

async function request(path, body, signal) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  const answer = await response.json().catch(() => ({ error: `${response.status} ${response.statusText}` }));
  if (!response.ok) throw new Refusal(response.status, answer.error, Number(response.headers.get("Retry-After")));
  return answer;
}

function report(error) {
  if (error.name === "AbortError") return;
  if (error.status === 401) byId("token").hidden = false;
  problem.textContent = error instanceof Refusal ? error.message : "The server does not answer.";
  if (error.seconds) typingTimer = setTimeout(update, error.seconds * 1000);
}

function percent(probability) {
  return probability < 0.01 ? "under 1 %" : `${Math.round(probability * 100)} %`;
}

// --- The page

async function start() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    sessionStorage.setItem("token", token);
    history.replaceState(null, "", location.pathname);
  }
  byId("example").textContent =
    `curl ${location.origin}/translate -H 'Content-Type: application/json' \\\n  -d '{"q": "How are you?", "alternatives": 2}'`;
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
  choose();
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
  for (const [run, article] of articles) {
    if (source.value.trim()) translate(run, article, lines, waiting.signal);
    else article.replaceChildren();
  }
}

async function translate(run, article, lines, signal) {
  article.setAttribute("aria-busy", "true");
  try {
    const body = { q: lines, run: run.name, details: true, alternatives: Math.min(run.translations, TRANSLATIONS) - 1 };
    const answer = await request("/translate", body, signal);
    const figures = answer.lines.filter((line) => line.translations.length).map((line) => new Line(run, line).figure);
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
  return make("header", {}, make("h2", {}, articles.size > 1 ? run.name : languageName(run.target)), navigator.clipboard ? copy : "");
}

function textOf(article) {
  return [...article.querySelectorAll("figure")].map((figure) => figure.dataset.text).join("\n");
}

// For screen readers: once, when the typing has stopped.
function announce() {
  clearTimeout(readingTimer);
  readingTimer = setTimeout(() => {
    announcement.textContent = [...articles.values()].map(textOf).join("\n");
  }, READING_PAUSE);
}

// --- A line of text and its translations

class Line {
  constructor(run, line) {
    Object.assign(this, { run, line });
    this.figure = make("figure", { class: "attention", "data-hint": "" });
    this.show(line.translations[0]);
  }

  show(translation) {
    this.shown = translation;
    this.figure.dataset.text = translation.text;
    const { attention } = translation;
    const sources = [...this.line.src_words, "(end)"];
    this.words = translation.words.map((word) => this.wordButton(word));
    this.panel = make("div");
    this.figure.replaceChildren(
      ...this.line.warnings.map((warning) => make("p", { class: "warning" }, `Probably wrong: ${warning}.`)),
      attention ? group("source", "Source", this.run.source, sources.map((word) => make("button", { type: "button" }, make("bdi", {}, word)))) : "",
      group("output", "Translation", this.run.target, this.words),
      attention ? make("p", { class: "status", role: "status" }) : "",
      this.panel,
      ...notes(translation),
      ...this.others(),
      attention ? weightTable(sources, translation, this.run) : "",
    );
    if (attention) addAttention(this.figure);
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
    const list = others.map((other) => make("li", {}, make("button", { type: "button", lang: this.run.target, onclick: () => {
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
    const field = make("input", { "aria-label": "Another word", placeholder: "another word", lang: this.run.target, autocomplete: "off" });
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
      message.textContent = alternatives.length > 1 ? "" : "The model knows no other word for this place.";
    } catch (error) {
      list.replaceChildren();
      message.textContent = error instanceof Refusal ? error.message : "The server does not answer.";
    }
  }

  choice(word, { word: text, probability, translation }) {
    const isShown = translation.text === this.shown.text;
    const rest = translation.words.slice(this.shown.words.indexOf(word) + 1).map((each) => each.before + each.text).join("");
    return make("li", {}, make("button", { type: "button", lang: this.run.target, "aria-current": isShown && "true", onclick: () => {
      this.replace(word, translation);
    } }, make("span", {}, make("strong", {}, text), make("small", {}, rest)), make("small", {}, percent(probability))));
  }

  // Start the translation with the words before `word` and the typed text.
  async force(word, typed, message) {
    if (!typed.trim()) return;
    const before = this.shown.words.slice(0, this.shown.words.indexOf(word)).map((each) => each.before + each.text).join("");
    const body = { q: [this.line.source], run: this.run.name, details: true, prefix: `${before} ${typed}`.trim() };
    try {
      const { lines } = await request("/translate", body);
      this.replace(word, lines[0].translations[0]);
    } catch (error) {
      message.textContent = error instanceof Refusal ? error.message : "The server does not answer.";
    }
  }

  // Show a translation in which another word stands in place of `word`, and stay at this place.
  replace(word, translation) {
    const index = this.shown.words.indexOf(word);
    this.show(translation);
    this.words[Math.min(index, this.words.length - 1)]?.focus();
    announce();
  }

  close() {
    for (const button of this.words) button.setAttribute("aria-expanded", "false");
    this.panel.replaceChildren();
  }
}

function group(side, label, lang, buttons) {
  return make("div", { class: `words ${side}`, role: "group", "aria-label": label, lang }, ...buttons);
}

// The marks in words.
function notes({ words, complete, replaced }) {
  const doubtful = words.filter((word) => word.origin === "model" && word.probability < DOUBTFUL);
  const texts = [];
  if (doubtful.length) texts.push(`Doubtful: ${doubtful.map((word) => `“${word.text}” ${percent(word.probability)}`).join(", ")}.`);
  const origins = { copied: "copied from the source", lexicon: "from the lexicon", "left out": "left out" };
  const unknown = replaced.filter(({ origin }) => origin !== "glossary");
  for (const { token, origin } of unknown) texts.push(`Unknown word, ${origins[origin]}${token ? `: “${token}”` : ""}.`);
  if (!complete) texts.push("Cut at the maximum length.");
  return texts.length ? [make("p", { class: "notes" }, texts.join(" "))] : [];
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
  const head = make("tr", {}, make("td"), ...sources.map((word) => make("th", { scope: "col" }, make("bdi", {}, word))));
  const rows = words.map((word, row) => make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, word.text)), ...attention[row].map((weight) => {
    const shade = Math.round(weight * 10);
    return make("td", { class: shade ? `w${shade}` : false }, weight < 0.005 ? "" : String(Math.round(weight * 100)));
  })));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  const label = `Attention in percent, ${run.name}: ${text}`;
  const region = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
  return make("details", {}, make("summary", {}, "Attention in percent"), region);
}

source.addEventListener("input", (event) => {
  if (event.isComposing) return;
  clearTimeout(typingTimer);
  typingTimer = setTimeout(update, TYPING_PAUSE);
});
source.addEventListener("compositionend", () => { typingTimer = setTimeout(update, TYPING_PAUSE); });
direction.addEventListener("change", choose);
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("token-field").value);
  byId("token").hidden = true;
  start();
});
start();
