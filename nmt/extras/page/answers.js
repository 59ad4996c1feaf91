// The answers to the requests of the page, as nmt/extras/serve/answers.py gives them.

const MIN_PROBABILITY = 0.002; // of an alternative; less probable tokens start nonsense
const N_ALTERNATIVES = 8;

const last = (values) => Math.max(-1, ...values);

// A run that translates. Its parts come from web_page.py; weights: ArrayBuffer.
class Translator {
  constructor(parts, weights) {
    [this.rules, this.options] = [parts, parts.decoding];
    this.wide = new RegExp(parts.wide, "u");
    this.copied = new RegExp(parts.copied, "su");
    this.model = new Model(parts, weights);
    [this.src, this.tgt] = [new Language(parts.src), new Language(parts.tgt)];
  }

  // A text, its tokens that the model reads, and their ids.
  read(source) {
    const all = this.src.tokenizer.split(source);
    const srcTokens = all.slice(0, this.options.max_source_tokens);
    const src = srcTokens.map((token) => this.src.ids.get(token) ?? UNK);
    return { source, srcTokens, src, srcCut: all.length > src.length };
  }

  // The n best translations of a sentence that begin with the ids `prefix`; of those with the same
  // text, the best one. More hypotheses are asked for where few texts differ.
  async findBest(text, n, prefix, nBest = n) {
    const given = this.read(text);
    if (!given.src.length) return [];
    if (!prefix.length && this.copied.test(text)) return [copyOf(given)];
    const { best } = await search(this.model, given.src, this.options, nBest, prefix);
    const all = best.map((end) => this.translationOf(given, end));
    const texts = all.map((each) => each.text);
    const found = all.filter((each, i) => texts.indexOf(each.text) === i).slice(0, n);
    const { beam } = this.options;
    return found.length < n && nBest < beam ? this.findBest(text, n, prefix, beam) : found;
  }

  translationOf(given, end) {
    const nodes = [];
    for (let node = end; node.parent; node = node.parent) nodes.unshift(node);
    const ids = nodes.map(({ id }) => id).slice(0, end.complete ? -1 : undefined);
    const tokens = ids.map((id) => this.tgt.tokens[id]);
    const attention = nodes.map((node) => node.attention);
    const replaced = this.options.replace_unknown ? this.replace(given, tokens, attention) : [];
    const written = tokens.slice();
    for (const { position, token } of replaced) written[position] = token;
    const text = this.tgt.tokenizer.join(written);
    const token_log_probs = nodes.map(({ own }) => own);
    const found = { text, tokens, written, replaced, attention, token_log_probs };
    return { ...given, ...found, score: end.score, complete: end.complete };
  }

  // Unknown words become the source word with the largest weight (Luong 2015b).
  replace({ source, srcTokens }, tokens, attention) {
    const surfaces = this.src.tokenizer.surfaceForms(source, srcTokens);
    const positions = [...tokens.keys()].filter((position) => tokens[position] === UNKNOWN);
    return positions.map((position) => {
      const weights = attention[position].slice(0, srcTokens.length);
      const peak = weights.indexOf(Math.max(...weights));
      return weights.some(Boolean)
        ? { position, src_position: peak, token: surfaces[peak], origin: "copied" }
        : { position, src_position: null, token: "", origin: "left out" };
    });
  }

  // The ids of the tokens of a translation.
  idsOf(tokens) {
    return tokens.map((token) => {
      const id = token === UNKNOWN ? UNK : this.tgt.ids.get(token);
      if (id !== undefined) return id;
      throw new Error(`'${this.tgt.tokenizer.join([token])}' is not in the target vocabulary`);
    });
  }

  // All about each line and its translations.
  async translate({ q, alternatives = 0, prefix = "" }) {
    const ids = this.idsOf(this.tgt.tokenizer.split(prefix));
    const lines = [];
    for (const line of q) lines.push(await this.detailsOf(line, 1 + alternatives, ids));
    return { lines };
  }

  // A line of several sentences has them.
  async detailsOf(line, n, prefix) {
    const sentences = [];
    for (const [start, end] of prefix.length ? [[0]] : findSentences(line, this.rules.sentences)) {
      if (line) await pause();
      const { source, srcTokens } = this.read(line.slice(start, end));
      const best = await this.findBest(source, n, prefix);
      sentences.push({
        source,
        src_words: this.groupWords(source, srcTokens, this.src.tokenizer)[0],
        warnings: best.slice(0, 1).flatMap((each) => warningsOf(each, this)),
        translations: best.map((each) => this.describe(each)),
      });
    }
    if (sentences.length === 1) return sentences[0];
    const texts = sentences.flatMap(({ translations: [best] }) => best?.text ?? []);
    const text = texts.join(this.rules.writes_spaces ? " " : "");
    const warnings = new Set(sentences.flatMap((sentence) => sentence.warnings));
    return { source: line, warnings: [...warnings], translations: [{ text }], sentences };
  }

  // The words of a translation with their probabilities, and the attention between words.
  describe(translation) {
    const { source, srcTokens, text, written, replaced, token_log_probs } = translation;
    const [texts, rows] = this.groupWords(text, written, this.tgt.tokenizer);
    let [end, first] = [0, 0];
    const words = texts.map((word, index) => {
      const start = Math.max(text.indexOf(word, end), end);
      // Tokens that add no text belong to the next word.
      const next = Math.max(rows.lastIndexOf(index) + 1, first);
      const isOwn = ({ position, token }) => token && position >= first && position < next;
      const probability = Math.exp(sum(token_log_probs.slice(first, next)));
      const origin = replaced.findLast(isOwn)?.origin ?? "model";
      const before = text.slice(end, start);
      const token = first;
      [end, first] = [start + word.length, next];
      return { text: word, before, token, probability, origin };
    });
    // The sum over a source word's tokens, the mean over an output word's; the last column is the
    // end of the source.
    const columns = this.groupWords(source, srcTokens, this.src.tokenizer)[1];
    columns.push(last(columns) + 1);
    const weights = texts.map((_, index) => {
      const own = translation.attention.filter((_, row) => rows[row] === index);
      const totals = Array(last(columns) + 1).fill(0);
      for (const row of own) {
        columns.forEach((column, i) => column >= 0 && (totals[column] += row[i] / own.length));
      }
      return totals;
    });
    const attention = weights.flat().some(Boolean) ? weights : null; // null: the model has none
    return { ...translation, confidence: null, words, attention };
  }

  // The words of a text, and for each token the index of its word; -1 if it adds no text. Words
  // stand between spaces; in scripts that write none, each token is a word.
  groupWords(text, tokens, tokenizer) {
    if (this.wide.test(text)) {
      const words = tokens.map((token) => tokenizer.join([token]));
      let n = 0;
      return [words.filter(Boolean), words.map((word) => (word ? n++ : -1))];
    }
    let before = "";
    const indices = tokens.map((_, i) => {
      const joined = tokenizer.join(tokens.slice(0, i + 1));
      const isNew = joined !== before;
      before = joined;
      return isNew ? joined.split(" ").length - 1 : -1;
    });
    const written = text.split(SPACES).filter((word) => tokenizer.normalize(word));
    const n = last(indices) + 1;
    return [written.length === n ? written : before.split(" ").slice(0, n), indices];
  }

  // The words that could follow the first tokens of a translation, each with the rest.
  async alternatives({ q: text, tokens }) {
    const prefix = this.idsOf(tokens);
    const step = stepAfter(this.model, this.read(text).src, prefix);
    const found = new Map();
    for (const id of step.words(0, N_ALTERNATIVES, [...SPECIALS.keys()])) {
      const probability = Math.exp(step.logProb(0, id));
      if (found.size && probability < MIN_PROBABILITY) break;
      await pause();
      const [best] = await this.findBest(text, 1, [...prefix, id]);
      if (!found.has(best.text)) found.set(best.text, { best, probability });
    }
    const alternatives = [...found.values()].flatMap(({ best, probability }) => {
      const [translation, warnings] = [this.describe(best), warningsOf(best, this)];
      // None: the token continues the word before.
      const words = translation.words.filter(({ token }) => token === prefix.length);
      return words.map((word) => ({ word: word.text, probability, translation, warnings }));
    });
    return { alternatives };
  }

  // What the beam kept at each step.
  async tree({ q }) {
    const { src } = this.read(q);
    const { best, steps } = await search(this.model, src, this.options, this.options.beam);
    const kept = steps.flat();
    const placeIn = (list, node) => (list.includes(node) ? list.indexOf(node) : null);
    const nodes = kept.map((node) => ({
      text: this.tgt.tokens[node.id],
      parent: placeIn(kept, node.parent),
      rank: placeIn(best, node),
      probability: Math.exp(node.own),
      ends: node.complete || best.includes(node),
    }));
    return { nodes };
  }
}

// A line without words is its own translation.
function copyOf(given) {
  const { source, srcTokens: tokens } = given;
  const n = tokens.length + 1;
  const attention = Array.from({ length: n }, (_, row) => Array(n).fill(0).with(row, 1));
  const isPrintable = !/(?! )[\p{C}\p{Z}]/u.test(source);
  const text = isPrintable ? source : normalize(source);
  const found = { text, tokens, written: tokens, replaced: [], attention };
  return { ...given, ...found, token_log_probs: Array(n).fill(0), score: 0, complete: true };
}
