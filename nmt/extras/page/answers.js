// The answers to the requests of the page, as nmt/extras/serve/answers.py gives them.

const MIN_PROBABILITY = 0.002; // of an alternative; less probable tokens start nonsense
const N_ALTERNATIVES = 8;
const N_SPECIALS = 4;
const UNKNOWN = "<unk>";

const last = (values) => Math.max(-1, ...values);

// A run that translates. Its parts come from web_page.py; weights: ArrayBuffer.
class Translator {
  constructor(parts, weights) {
    const { settings, vocabularies, tokenizers, encoder, step, sizes: [size, rest] } = parts;
    if (weights.byteLength !== size + rest) throw new Error("weights are missing");
    const idsOf = ({ tokens }) => new Map(tokens.map((token, id) => [token, id]).slice(N_SPECIALS));
    const sides = ["src", "tgt"];
    this.settings = settings;
    this.options = { ...settings.decoding, words: vocabularies.tgt.tokens.length };
    this.rules = parts;
    this.tgtTokens = vocabularies.tgt.tokens;
    [this.srcIds, this.tgtIds] = [idsOf(vocabularies.src), idsOf(vocabularies.tgt)];
    [this.srcTokenizer, this.tgtTokenizer] = sides.map((side) => new Tokenizer(settings.tokenizers[side], tokenizers[side]));
    const frequencies = (tokenizer, { tokens, counts }) => wordFrequencies(tokenizer, tokens, counts);
    this.languages = [frequencies(this.srcTokenizer, vocabularies.src), frequencies(this.tgtTokenizer, vocabularies.tgt)];
    this.wide = new RegExp(parts.wide, "u");
    this.model = new Model(new Graph(encoder, weights.slice(0, size)), new Graph(step, weights.slice(size)));
  }

  // A text, its tokens that the model reads, and their ids.
  read(source) {
    const all = this.srcTokenizer.split(source);
    const srcTokens = all.slice(0, this.options.max_source_tokens);
    return { source, srcTokens, src: srcTokens.map((token) => this.srcIds.get(token) ?? UNK), srcCut: all.length > srcTokens.length };
  }

  // The n best translations of a sentence that begin with the ids `prefix`; of those with the same text, the best one.
  async translate(text, n, prefix, pause) {
    const given = this.read(text);
    if (!given.src.length) return [];
    if (!prefix.length && isCopied(text, this.settings.not_copied)) return [copyOf(given)];
    const findBest = async (nBest) => {
      const { best } = await search(this.model, given.src, this.options, nBest, prefix, pause);
      const all = best.map((end) => this.translationOf(given, end));
      return all.filter(({ text }, i) => all.findIndex((other) => other.text === text) === i).slice(0, n);
    };
    const found = await findBest(n);
    return found.length < n && n < this.options.beam ? findBest(this.options.beam) : found;
  }

  translationOf(given, end) {
    const nodes = pathTo(end);
    const tokens = (end.complete ? nodes.slice(0, -1) : nodes).map(({ id }) => this.tgtTokens[id]);
    const attention = nodes.map((node) => node.attention);
    const replaced = this.options.replace_unknown && tokens.includes(UNKNOWN) ? this.replace(given, tokens, attention) : [];
    const written = tokens.slice();
    for (const { position, token } of replaced) written[position] = token;
    const text = this.tgtTokenizer.join(written.filter(Boolean));
    return { ...given, text, tokens, written, replaced, attention, logProbs: nodes.map(({ own }) => own), score: end.score, complete: end.complete };
  }

  // Unknown words become the source word with the largest weight, or its translation (Luong 2015b).
  replace({ source, srcTokens }, tokens, attention) {
    const surfaces = this.srcTokenizer.surfaceForms(source, srcTokens);
    return tokens.flatMap((unknown, position) => {
      if (unknown !== UNKNOWN) return [];
      const weights = attention[position].slice(0, srcTokens.length);
      if (!weights.some(Boolean)) return { position, src_position: null, token: "", origin: "left out" };
      const peak = weights.indexOf(Math.max(...weights));
      const entry = this.settings.lexicon[srcTokens[peak]] ?? UNKNOWN;
      const [token, origin] = entry === UNKNOWN ? [surfaces[peak], "copied"] : [entry, "lexicon"];
      return { position, src_position: peak, token, origin };
    });
  }

  // The ids of the tokens of a translation.
  idsOf(tokens) {
    return tokens.map((token) => {
      const id = token === UNKNOWN ? UNK : this.tgtIds.get(token);
      if (id === undefined) throw new Error(`'${this.tgtTokenizer.join([token])}' is not in the target vocabulary`);
      return id;
    });
  }

  // All about a line and its translations; a line of several sentences has them.
  async detailsOf(line, n, prefix, pause) {
    const ids = this.idsOf(this.tgtTokenizer.split(prefix));
    const sentences = [];
    for (const [start, end] of prefix ? [[0]] : findSentences(line, this.rules.sentences)) {
      if (line) await pause();
      const { source, srcTokens, srcCut } = this.read(line.slice(start, end));
      const translations = await this.translate(source, n, ids, pause);
      const warnings = translations.slice(0, 1).flatMap((best) => this.warningsOf(best));
      const [words] = this.groupWords(source, srcTokens, this.srcTokenizer);
      sentences.push({ source, src_words: words, src_cut: srcCut, warnings, translations: translations.map((each) => this.describe(each)) });
    }
    if (sentences.length === 1) return sentences[0];
    const texts = sentences.flatMap(({ translations }) => translations.slice(0, 1).map(({ text }) => text));
    const warnings = [...new Set(sentences.flatMap((sentence) => sentence.warnings))];
    return { source: line, warnings, translations: [{ text: texts.join(this.rules.writes_spaces ? " " : "") }], sentences };
  }

  warningsOf(translation) {
    const { warnings, items } = this.rules;
    const texts = warningsOf(translation, warnings, ...this.languages);
    return lacksItems(translation.source, translation.text, items) ? [...texts, warnings.descriptions["items changed"]] : texts;
  }

  // The words of a translation with their probabilities, and the attention between words.
  describe({ source, srcTokens, text, tokens, written, replaced, attention, logProbs, score, complete }) {
    const [texts, rows] = this.groupWords(text, written, this.tgtTokenizer);
    const columns = this.groupWords(source, srcTokens, this.srcTokenizer)[1];
    let [end, first] = [0, 0];
    const words = texts.map((word, index) => {
      const start = Math.max(text.indexOf(word, end), end);
      const next = Math.max(rows.lastIndexOf(index) + 1, first); // tokens that add no text belong to the next word
      const origin = replaced.findLast(({ position, token }) => token && position >= first && position < next)?.origin ?? "model";
      const probability = Math.exp(sumOf(logProbs.slice(first, next)));
      const result = { text: word, before: text.slice(end, start), token: first, probability, origin };
      [end, first] = [start + word.length, next];
      return result;
    });
    // The sum over a source word's tokens, the mean over an output word's; the last column is the end of the source.
    const ends = [...columns, last(columns) + 1];
    const weights = texts.map((_, index) => {
      const own = attention.filter((__, row) => rows[row] === index);
      const totals = new Array(last(ends) + 1).fill(0);
      for (const row of own) row.forEach((weight, column) => { if (ends[column] >= 0) totals[ends[column]] += weight / own.length; });
      return totals;
    });
    const shown = { text, tokens, score, log_prob: sumOf(logProbs), token_log_probs: logProbs, replaced, complete, confidence: null, words };
    return { ...shown, attention: weights.flat().some(Boolean) ? weights : null }; // null: the model has none
  }

  // The words of a text, and for each token the index of its word; -1 if it adds no text. Words stand between spaces; in
  // scripts that write none, each token is a word.
  groupWords(text, tokens, tokenizer) {
    const words = [];
    if (this.wide.test(text)) {
      const indices = tokens.map((token) => {
        const word = tokenizer.join([token]);
        return word ? words.push(word) - 1 : -1;
      });
      return [words, indices];
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
    return [written.length === n ? written : tokenizer.join(tokens).split(" ").slice(0, n), indices];
  }

  // The words that could follow the first tokens of a translation, each with the rest.
  async alternatives(text, tokens, pause) {
    const prefix = this.idsOf(tokens);
    const n = Math.min(N_ALTERNATIVES + N_SPECIALS, this.options.words);
    const step = [...follow(this.model, [this.read(text).src], prefix, n)].at(-1);
    const likely = step.words(0).filter(({ id }) => id >= N_SPECIALS).slice(0, N_ALTERNATIVES);
    const found = new Map();
    for (const { id, logProb } of likely) {
      const probability = Math.exp(logProb);
      if (found.size && probability < MIN_PROBABILITY) break;
      await pause();
      const [best] = await this.translate(text, 1, [...prefix, id], pause);
      if (!found.has(best.text)) found.set(best.text, { best, probability });
    }
    return [...found.values()].flatMap(({ best, probability }) => {
      const translation = this.describe(best);
      const words = translation.words.filter(({ token }) => token === prefix.length); // none: the token continues the word before
      return words.map((word) => ({ word: word.text, probability, translation, warnings: this.warningsOf(best) }));
    });
  }

  // How much less probable each token of a translation and its end become, in nats, without each word of the source.
  async losses(text, tokens, pause) {
    const { srcTokens, src } = this.read(text);
    const [words, places] = this.groupWords(text, srcTokens, this.srcTokenizer);
    if (words.length < 2) return []; // without its only word, there is nothing to translate
    const shorter = words.map((_, word) => src.filter((__, i) => places[i] !== word));
    const ids = this.idsOf(tokens);
    const losses = words.map(() => []);
    let position = 0;
    for (const step of follow(this.model, [src, ...shorter], ids)) {
      if (position % STEPS_AT_ONCE === 0) await pause();
      const id = ids[position++] ?? EOS;
      losses.forEach((loss, i) => loss.push(step.logProb(0, id) - step.logProb(i + 1, id)));
    }
    return losses;
  }

  // What the beam kept at each step.
  async tree(text, pause) {
    const { best, steps } = await search(this.model, this.read(text).src, this.options, this.options.beam, [], pause);
    const nodes = steps.flat();
    const placeIn = (list, node) => (list.includes(node) ? list.indexOf(node) : null);
    return nodes.map((node) => ({
      text: this.tgtTokens[node.id], parent: placeIn(nodes, node.parent), rank: placeIn(best, node),
      probability: Math.exp(node.own), log_prob: node.logProb, ends: node.complete || best.includes(node),
    }));
  }
}

// A line without words is its own translation.
function copyOf(given) {
  const { source, srcTokens } = given;
  const attention = [...srcTokens, EOS].map((_, row, all) => all.map((__, column) => Number(row === column)));
  const text = /(?! )[\p{C}\p{Z}]/u.test(source) ? normalize(source) : source; // printable characters stay
  const logProbs = attention.map(() => 0);
  return { ...given, text, tokens: srcTokens, written: srcTokens, replaced: [], attention, logProbs, score: 0, complete: true };
}

// By path: the translator, the body of the request, and a function to wait for between its parts.
const ANSWERS = {
  "/translate": async (translator, { q: lines, alternatives = 0, prefix = "" }, pause) => {
    const details = [];
    for (const line of lines) details.push(await translator.detailsOf(line, 1 + alternatives, prefix, pause));
    return { lines: details };
  },
  "/alternatives": async (translator, { q, tokens }, pause) => ({ alternatives: await translator.alternatives(q, tokens, pause) }),
  "/without": async (translator, { q, tokens }, pause) => ({ losses: await translator.losses(q, tokens, pause) }),
  "/tree": async (translator, { q }, pause) => ({ nodes: await translator.tree(q, pause) }),
};
