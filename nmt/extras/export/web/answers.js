// The answers to the requests of the page, as nmt/extras/serve/answers.py gives them.

const MIN_PROBABILITY = 0.002; // of an alternative; less probable tokens start nonsense
const N_ALTERNATIVES = 8;
const N_SPECIALS = 4;
const UNKNOWN = "<unk>";

const totalOf = (values) => values.reduce((total, value) => total + value, 0);
const last = (values) => Math.max(-1, ...values);

// A run that translates. Its parts come from web_page.py; weights: ArrayBuffer.
class Translator {
  constructor(parts, weights) {
    const { settings, vocabularies, tokenizers, encoder, step, encoder_bytes: size } = parts;
    const idOf = (tokens) => new Map(tokens.map((token, id) => [token, id]).slice(N_SPECIALS));
    this.parts = parts;
    this.settings = settings;
    this.options = { ...settings.decoding, words: vocabularies.tgt.length };
    this.tgtTokens = vocabularies.tgt;
    [this.srcIds, this.tgtIds] = [idOf(vocabularies.src), idOf(vocabularies.tgt)];
    this.srcTokenizer = new Tokenizer(settings.tokenizers.src, tokenizers.src);
    this.tgtTokenizer = new Tokenizer(settings.tokenizers.tgt, tokenizers.tgt);
    this.languages = [
      wordFrequencies(this.srcTokenizer, vocabularies.src, parts.counts.src),
      wordFrequencies(this.tgtTokenizer, vocabularies.tgt, parts.counts.tgt),
    ];
    this.wide = new RegExp(parts.wide, "u");
    this.model = new Model(new Graph(encoder, weights.slice(0, size)), new Graph(step, weights.slice(size)));
  }

  // The tokens of a text that the model reads, and their ids.
  read(text) {
    const all = this.srcTokenizer.split(text);
    const srcTokens = all.slice(0, this.options.max_source_tokens);
    return { srcTokens, src: srcTokens.map((token) => this.srcIds.get(token) ?? UNK), isCut: all.length > srcTokens.length };
  }

  // The n best translations of a sentence that begin with the ids `prefix`; of those with the same text, the best one.
  translate(text, n, prefix = []) {
    const { srcTokens, src } = this.read(text);
    if (!src.length) return [];
    if (!prefix.length && isCopied(text, this.settings.not_copied)) return [this.copyOf(text, srcTokens)];
    const findBest = (nBest) => {
      const { best } = search(this.model, src, this.options, nBest, prefix);
      const unique = new Map();
      for (const end of best) {
        const translation = this.translationOf(text, srcTokens, end);
        if (!unique.has(translation.text)) unique.set(translation.text, translation);
      }
      return [...unique.values()].slice(0, n);
    };
    const found = findBest(n);
    return found.length < n && n < this.options.beam ? findBest(this.options.beam) : found;
  }

  translationOf(source, srcTokens, end) {
    const nodes = pathTo(end);
    const tokens = (end.complete ? nodes.slice(0, -1) : nodes).map(({ id }) => this.tgtTokens[id]);
    const attention = nodes.map((node) => node.attention);
    const replaced = this.options.replace_unknown && tokens.includes(UNKNOWN) ? this.replace(source, srcTokens, tokens, attention) : [];
    const written = tokens.slice();
    for (const { position, token } of replaced) written[position] = token;
    const logProbs = nodes.map(({ own }) => own);
    return { source, srcTokens, text: this.join(written), tokens, written, replaced, attention, logProbs, score: end.score, complete: end.complete };
  }

  join(tokens) {
    return this.tgtTokenizer.join(tokens.filter(Boolean));
  }

  // Unknown words become the source word with the largest weight, or its translation (Luong 2015b).
  replace(source, srcTokens, tokens, attention) {
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

  copyOf(source, srcTokens) {
    const attention = [...srcTokens, EOS].map((_, row, all) => all.map((__, column) => Number(row === column)));
    const text = /(?! )[\p{C}\p{Z}]/u.test(source) ? normalize(source) : source; // printable characters stay
    return { source, srcTokens, text, tokens: srcTokens, written: srcTokens, replaced: [], attention,
      logProbs: attention.map(() => 0), score: 0, complete: true };
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
    const places = prefix ? [[0, line.length]] : findSentences(line, this.parts.sentences);
    const sentences = [];
    for (const [start, end] of places) {
      await pause();
      const source = line.slice(start, end);
      const { srcTokens, isCut } = this.read(source);
      const translations = this.translate(source, n, ids);
      const warnings = translations.slice(0, 1).flatMap((best) => this.warningsOf(best, isCut));
      const described = translations.map((each) => this.describe(each));
      sentences.push({ source, src_words: this.groupWords(source, srcTokens, this.srcTokenizer)[0], src_cut: isCut, warnings, translations: described });
    }
    if (sentences.length === 1) return sentences[0];
    const text = sentences.flatMap(({ translations }) => translations.slice(0, 1).map((best) => best.text)).join(this.parts.writes_spaces ? " " : "");
    return { source: line, warnings: [], translations: [{ text }], sentences };
  }

  warningsOf(translation, srcCut) {
    return warningsOf({ ...translation, srcCut }, this.parts.warnings, ...this.languages);
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
      const probability = Math.exp(totalOf(logProbs.slice(first, next)));
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
    return { text, tokens, score, log_prob: totalOf(logProbs), token_log_probs: logProbs, replaced, complete, confidence: null, words, attention: weights };
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
    const { src, isCut } = this.read(text);
    let [encoded, step] = [this.model.encode([src])];
    for (const [position, id] of [SOS, ...prefix].entries()) {
      step = this.model.step(encoded, [id], position, Math.min(N_ALTERNATIVES + N_SPECIALS, this.options.words));
      encoded = { ...encoded, state: step.state };
    }
    const likely = step.words(0).filter(({ id }) => id >= N_SPECIALS).slice(0, N_ALTERNATIVES);
    const found = new Map();
    for (const { id, logProb } of likely) {
      const probability = Math.exp(logProb);
      if (found.size && probability < MIN_PROBABILITY) break;
      await pause();
      const [best] = this.translate(text, 1, [...prefix, id]);
      if (!found.has(best.text)) found.set(best.text, { best, probability });
    }
    return [...found.values()].flatMap(({ best, probability }) => {
      const translation = this.describe(best);
      // Otherwise the token continues the word before.
      const words = translation.words.filter(({ token }) => token === prefix.length);
      return words.map((word) => ({ word: word.text, probability, translation, warnings: this.warningsOf(best, isCut) }));
    });
  }

  // How much less probable each token of a translation and its end become, in nats, without each word of the source.
  losses(text, tokens) {
    const { srcTokens, src } = this.read(text);
    const indices = this.groupWords(text, srcTokens, this.srcTokenizer)[1];
    const words = [...new Set(indices)].filter((index) => index >= 0);
    if (words.length < 2) return []; // without its only word, there is nothing to translate
    const shorter = words.map((word) => src.filter((_, i) => indices[i] !== word));
    const [whole, ...without] = force(this.model, [src, ...shorter], [...this.idsOf(tokens), EOS]);
    return without.map((logProbs) => logProbs.map((logProb, i) => whole[i] - logProb));
  }

  // What the beam kept at each step.
  tree(text) {
    const { best, steps } = search(this.model, this.read(text).src, this.options, this.options.beam);
    const nodes = steps.flat();
    return nodes.map(({ id, parent, own, logProb, ends }, index) => ({
      text: this.tgtTokens[id], parent: parent.parent ? nodes.indexOf(parent) : null,
      probability: Math.exp(own), log_prob: logProb, ends, rank: best.includes(nodes[index]) ? best.indexOf(nodes[index]) : null,
    }));
  }
}

// By path: the translator, the body of the request, and a function to wait for between its parts.
const ANSWERS = {
  "/translate": async (translator, { q: lines, alternatives = 0, prefix = "" }, pause) => {
    const details = [];
    for (const line of lines) details.push(await translator.detailsOf(line, 1 + alternatives, prefix, pause));
    return { lines: details };
  },
  "/alternatives": async (translator, { q, tokens }, pause) => ({ alternatives: await translator.alternatives(q, tokens, pause) }),
  "/without": async (translator, { q, tokens }) => ({ losses: translator.losses(q, tokens) }),
  "/tree": async (translator, { q }) => ({ nodes: translator.tree(q) }),
};
