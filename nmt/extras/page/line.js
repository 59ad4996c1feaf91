"use strict";
// A line of text and its translations. Their parts stand in the templates of index.html.

const DOUBTFUL = 0.3; // words of a lower probability are marked
const UNSURE = 0.5; // translations of a lower confidence are marked
const ORIGINS = {
  copied: "unknown word, copied from the source",
  glossary: "from the terms",
};

// Where lines have several sentences, they are read as text. The sentence that is chosen shows its
// words below.
class Paragraph {
  constructor(run, line) {
    this.text = make("p.text", { lang: run.target, dir: "auto" });
    this.panel = make("div");
    this.figure = make("section", {}, ...line.warnings.map(warningOf), this.text, this.panel);
    let rest = line.translations[0].text;
    for (const sentence of line.sentences ?? [line]) {
      const text = sentence.translations[0]?.text;
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
    const button = make("span", { role: "button", tabIndex: 0, ariaExpanded: "false" });
    const show = ({ text, confidence }) => {
      const content = make("span", {}, text);
      if (isUnsure(confidence)) mark(content, "doubtful", `low confidence, ${percent(confidence)}`);
      button.replaceChildren(content);
      this.figure.dataset.text = this.text.textContent;
    };
    show(sentence.translations[0]);
    let line; // made when it is chosen first
    button.onclick = () => {
      line ??= new Line(run, sentence, show);
      const isOpen = toggle(button, this.text.children);
      this.panel.replaceChildren(...(isOpen ? [line.figure] : []));
    };
    button.onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
    };
    return button;
  }
}

// A sentence and its translations. changed: called with each translation that is shown.
class Line {
  constructor(run, line, changed = () => {}) {
    Object.assign(this, { run, line, changed, figure: copyOf("line") });
    this.sources = [...line.src_words, "(end)"];
    this.figure.querySelector(".beam").ontoggle = ({ target }) => this.loadTree(target);
    this.show(line.translations[0]);
  }

  show(translation, warnings = this.line.warnings) {
    const { text, attention } = translation;
    this.shown = translation;
    this.figure.dataset.text = text;
    this.changed(translation);
    this.words = translation.words.map((word) => this.wordButton(word));
    const others = this.line.translations.filter((other) => other.text !== text);
    this.fill(".warnings", ...warnings.map(warningOf));
    this.fill(".source", ...(attention ? this.sources.map(buttonOf) : []));
    this.fill(".output", ...this.words);
    this.fill(".place");
    this.fill(".marks", ...this.marks());
    this.fill(".others ul", ...others.map((other) => this.other(other)));
    this.fill(".weights", attentionTable(this.run, this.sources, translation));
    if (attention) addAttention(this.figure);
  }

  // Fills a part of the figure.
  fill(selector, ...children) {
    this.figure.querySelector(selector).replaceChildren(...children);
  }

  ask(path, fields = {}) {
    return request(path, { q: this.line.source, run: this.run.name, ...fields });
  }

  async loadTree(details) {
    if (!details.open) return;
    try {
      const { nodes } = await this.ask("/tree");
      this.fill(".beam div", drawTree(nodes, this.run));
    } catch (error) {
      this.fill(".beam div", make("p.warning", {}, inWords(error)));
    }
  }

  wordButton(word) {
    const button = buttonOf(word.text);
    button.ariaExpanded = "false";
    button.onclick = () => this.open(word, button);
    const doubt = `doubtful, ${percent(word.probability)}`;
    if (word.origin !== "model") mark(button, "replaced", ORIGINS[word.origin]);
    else if (word.probability < DOUBTFUL) mark(button, "doubtful", doubt);
    return button;
  }

  // The marks in words, and the confidence.
  marks() {
    const { confidence } = this.shown;
    const marked = this.words.filter((button) => button.title);
    const texts = marked.map((button) => `“${button.textContent}”: ${button.title}.`);
    if (confidence >= UNSURE) texts.push(`Confidence ${percent(confidence)}.`);
    const doubt = `Low confidence, ${percent(confidence)}: check this translation.`;
    const doubts = isUnsure(confidence) ? [make("span.warning", {}, doubt)] : [];
    return [...doubts, texts.join(" ")];
  }

  // A row for another translation of the beam: its words that the shown one lacks are bold.
  other(other) {
    const shown = this.shown.text.split(" ");
    const text = make("span", { lang: this.run.target });
    for (const word of other.text.split(" ")) {
      text.append(shown.includes(word) ? word : make("strong", {}, word), " ");
    }
    const onclick = () => this.replace(this.shown.words[0], other);
    return make("li", {}, make("button", { onclick }, text));
  }

  // The words that could stand in place of a word.
  async open(word, button) {
    this.fill(".place");
    if (!toggle(button, this.words)) return;
    const panel = copyOf("panel");
    const find = (selector) => panel.querySelector(selector);
    const [list, message, field] = ["ul", ".notes", "input"].map(find);
    find("bdi").textContent = `“${word.text}”`;
    list.lang = field.lang = this.run.target;
    find(".close").onclick = () => {
      button.click();
      button.focus();
    };
    panel.onkeydown = ({ key }) => {
      if (key === "Escape") find(".close").click();
    };
    find("form").onsubmit = () => this.force(word, field.value, message);
    this.fill(".place", panel);
    try {
      const tokens = this.shown.tokens.slice(0, word.token);
      const { alternatives } = await this.ask("/alternatives", { tokens });
      list.replaceChildren(...alternatives.map((each) => this.choice(word, each)));
      // A word may have been typed meanwhile, and refused.
      if (alternatives.length < 2) message.textContent ||= "The model knows no other word here.";
    } catch (error) {
      list.replaceChildren();
      message.textContent = `There are no alternatives: ${inWords(error)}`;
    }
    panel.scrollIntoView({ block: "nearest" });
  }

  choice(word, { word: text, probability, translation, warnings }) {
    const rest = written(translation.words.slice(this.shown.words.indexOf(word) + 1));
    const words = make("span", {}, make("strong", {}, text), make("small", {}, rest));
    const ariaCurrent = String(translation.text === this.shown.text);
    const onclick = () => this.replace(word, translation, warnings);
    const share = make("small", {}, percent(probability));
    return make("li", {}, make("button", { ariaCurrent, onclick }, words, share));
  }

  // Start the translation with the words before `word` and the typed text.
  async force(word, typed, message) {
    const before = written(this.shown.words.slice(0, this.shown.words.indexOf(word)));
    const fields = { q: [this.line.source], details: true, prefix: `${before} ${typed}`.trim() };
    try {
      const [line] = (await this.ask("/translate", fields)).lines;
      this.replace(word, line.translations[0], line.warnings);
    } catch (error) {
      message.textContent = inWords(error);
    }
  }

  // Show a translation in which another word stands in place of `word`, and stay at this place.
  replace(word, translation, warnings) {
    const index = this.shown.words.indexOf(word);
    this.show(translation, warnings);
    this.words.at(Math.min(index, this.words.length - 1))?.focus();
    announce();
  }
}

// Opens what belongs to a button, or closes it; of the buttons `all`, the others are closed.
// Returns whether it is open now.
function toggle(button, all) {
  const isOpen = button.ariaExpanded === "false";
  for (const each of all) each.ariaExpanded = String(isOpen && each === button);
  return isOpen;
}

// Marks an element, and says why.
function mark(element, kind, description) {
  element.dataset.mark = kind;
  Object.assign(element, { title: description, ariaDescription: description });
}

const buttonOf = (word) => make("button", {}, make("span", {}, word));
const warningOf = (warning) => make("p.warning", {}, `Probably wrong: ${warning}.`);
const isUnsure = (confidence) => confidence !== null && confidence < UNSURE; // null: not known
const written = (words) => words.map(({ before, text }) => before + text).join("");
const toPercent = (share) => Math.round(100 * share);
const percent = (share) => (share < 0.01 ? "under 1 %" : `${toPercent(share)} %`);
