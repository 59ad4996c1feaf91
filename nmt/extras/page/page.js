"use strict";
// Translates while the user types. request_server.js or request_worker.js has `isServer` and
// `request(path, body, signal)`; line.js shows the translations.

const TYPING_PAUSE = 250; // milliseconds without a key until the text is translated
const READING_PAUSE = 900; // until a screen reader reads the translation
const TRANSLATIONS = 5; // of a line, if the beam is that wide

const byId = (id) => document.getElementById(id);
const ids = ["source", "direction", "results", "problem", "announcement", "terms"];
const [source, direction, results, problem, announcement, terms] = ids.map(byId);
let runs = [];
let articles = new Map(); // a run -> its article
let typingTimer, readingTimer, waiting;

// An element "tag.class" with properties and children.
function make(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = Object.assign(document.createElement(tag), properties);
  element.classList.add(...classes);
  element.append(...children);
  return element;
}

// A copy of a template.
const copyOf = (id) => byId(id).content.firstElementChild.cloneNode(true);

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

// --- The languages and the text

async function start() {
  const linked = new URLSearchParams(location.hash.slice(1));
  if (linked.has("token")) {
    sessionStorage.setItem("token", linked.get("token"));
    linked.delete("token"); // nobody shall copy it with the address
    history.replaceState(null, "", `#${linked}`);
  }
  runs = await request("/runs");
  const pairs = [...new Set(runs.map((run) => `${run.source} ${run.target}`))];
  const names = (pair) => pair.split(" ").map(languageName).join(" → ");
  direction.replaceChildren(...pairs.map((pair) => make("option", { value: pair }, names(pair))));
  direction.hidden = pairs.length < 2;
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

function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

// Show the runs of the chosen languages.
function choose() {
  const [from, to] = direction.value.split(" ");
  const [name, target] = [from, to].map(languageName);
  source.lang = from;
  byId("source-label").textContent = `Text in ${name}, to translate into ${target}`;
  document.title = `Translate ${name} to ${target}`;
  terms.value = localStorage.getItem(`terms ${direction.value}`) ?? "";
  const chosen = runs.filter((run) => run.source === from && run.target === to);
  const articleOf = ({ name }) => make("article.run", { ariaLabel: `Translation by ${name}` });
  articles = new Map(chosen.map((run) => [run, articleOf(run)]));
  results.replaceChildren(...articles.values());
  update();
}

function update() {
  clearTimeout(typingTimer);
  waiting?.abort();
  waiting = new AbortController();
  problem.textContent = "";
  const body = { q: source.value.split("\n"), glossary: readTerms(), details: true };
  for (const [run, article] of articles) {
    if (source.value.trim()) translate(run, article, body, waiting.signal);
    else article.replaceChildren();
  }
}

async function translate(run, article, fields, signal) {
  article.ariaBusy = "true";
  try {
    const alternatives = Math.min(run.translations, TRANSLATIONS) - 1;
    const answer = await request("/translate", { ...fields, run: run.name, alternatives }, signal);
    const lines = answer.lines.filter((line) => line.translations.length);
    const Part = lines.some((line) => line.sentences) ? Paragraph : Line;
    const figures = lines.map((line) => new Part(run, line).figure);
    article.replaceChildren(heading(run, article), ...figures);
    announce();
  } catch (error) {
    report(error);
  } finally {
    if (!signal.aborted) article.ariaBusy = null;
  }
}

function heading(run, article) {
  const copy = make("button.plain", { hidden: !navigator.clipboard }, "Copy");
  copy.onclick = async () => {
    await navigator.clipboard.writeText(textOf(article));
    copy.textContent = "Copied";
  };
  const link = make("a", { href: addressOfText(), title: "the address of this text" }, "Link");
  const title = make("h2", {}, articles.size > 1 ? run.name : languageName(run.target));
  return make("header", {}, title, make("span", {}, link, " ", copy));
}

function textOf(article) {
  const parts = [...article.querySelectorAll(":scope > [data-text]")];
  return parts.map(({ dataset }) => dataset.text).join("\n");
}

// For screen readers: once, when the typing has stopped.
function announce() {
  clearTimeout(readingTimer);
  readingTimer = setTimeout(() => {
    announcement.textContent = [...articles.values()].map(textOf).join("\n");
  }, READING_PAUSE);
}

function updateSoon(event) {
  if (event.isComposing) return;
  if (location.hash) history.replaceState(null, "", location.href.split("#")[0]); // another text
  clearTimeout(typingTimer);
  typingTimer = setTimeout(update, TYPING_PAUSE);
}

// --- Terms and files

// The terms, source -> target. Lines that are none are named.
function readTerms() {
  if (!isServer) return {};
  localStorage.setItem(`terms ${direction.value}`, terms.value);
  const lines = terms.value.split("\n").map((line) => line.split(/[=\t]/));
  const pairs = lines.map((parts) => parts.map((part) => part.trim()));
  const isTerm = (pair) => pair.length === 2 && pair.every(Boolean);
  const wrong = [...pairs.keys()].filter((i) => !isTerm(pairs[i]) && pairs[i].join(""));
  const found = pairs.filter(isTerm);
  const note = `Not used: line ${wrong.map((i) => i + 1).join(", ")}. Write: word = translation`;
  byId("terms-note").textContent = wrong.length ? note : "";
  byId("terms-title").textContent = found.length ? `Terms (${found.length})` : "Terms";
  return Object.fromEntries(found);
}

async function translateFile(file) {
  const state = make("p", { role: "status" }, make("progress"), " Translating…");
  const title = make("h2", { dir: "auto" }, file.name);
  const article = make("article.file", { ariaLabel: file.name }, title, state);
  byId("files").prepend(article);
  const form = new FormData();
  form.append("file", file);
  form.append("run", articles.keys().next().value.name);
  form.append("glossary", JSON.stringify(readTerms()));
  try {
    const { translatedFileUrl, warnings } = await request("/translate_file", form);
    // The server may not know under which name it is reached.
    const href = new URL(translatedFileUrl).pathname;
    const link = make("a", { href, download: "" }, "Download the translation");
    state.replaceChildren(link, " (for 10 minutes)");
    article.append(make("ul", {}, ...warnings.map((text) => make("li", {}, text))));
  } catch (error) {
    state.replaceChildren(make("span.warning", {}, inWords(error)));
  }
}

async function translateFiles(files) {
  if (!articles.size) return;
  for (const file of files) await translateFile(file); // one after the other: others wait, too
}

// --- What the user does

for (const field of [source, terms]) {
  field.addEventListener("input", updateSoon);
  field.addEventListener("compositionend", updateSoon);
}
byId("file").addEventListener("change", ({ target }) => {
  translateFiles([...target.files]);
  target.value = ""; // the same file may be chosen again
});
direction.addEventListener("change", choose);
addEventListener("hashchange", () => {
  if (location.hash !== addressOfText()) start().catch(report);
});
byId("token").addEventListener("submit", () => {
  sessionStorage.setItem("token", byId("token-field").value);
  byId("token").hidden = true;
  start().catch(report);
});
if (isServer) byId("origin").textContent = location.origin;
else for (const element of document.querySelectorAll("[data-server]")) element.remove();
start().catch(report);
