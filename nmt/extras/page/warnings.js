// Which translations are probably wrong: as nmt/texts/warnings.py, without lost sentences and lines
// without words.

const hasLetters = (text) => /\p{L}/u.test(text);

// A language: its tokenizer, and its vocabulary with the counts of the training data.
class Language {
  constructor({ tokenizer, tokens, counts }) {
    const total = Math.max(sum(counts), 1);
    const logProbs = counts.map((count) => Math.log(Math.max(count, 0.5) / total));
    Object.assign(this, { tokenizer: new Tokenizer(tokenizer), tokens, logProbs });
    this.unknown = logProbs.reduce((one, other) => Math.min(one, other));
    this.ids = new Map(tokens.map((token, id) => [token, id]).slice(SPECIALS.length));
  }

  // Of the tokens of a text, as if each were independent of the others.
  logProb(text) {
    const tokens = this.tokenizer.split(text);
    return sum(tokens.map((token) => this.logProbs[this.ids.get(token)] ?? this.unknown));
  }

  // Of each token with letters: whether it is in the vocabulary.
  known(text) {
    const tokens = this.tokenizer.split(text).filter(hasLetters);
    return tokens.map((token) => this.ids.has(token));
  }
}

// Their texts. translation: see answers.js; rules: by Python; src, tgt: languages.
function warningsOf(translation, { rules, src, tgt }) {
  const { source, text, srcTokens, tokens, srcCut, complete } = translation;
  const { warnings } = rules;
  const isRepeating = repeats(tokens, warnings) && !repeats(srcTokens, warnings);
  const names = [warningOfSource(translation, warnings, src, tgt)];
  if (srcCut) names.push("source cut");
  if (!complete) names.push("output cut");
  if (isRepeating) names.push("output repeats");
  if (lacksItems(source, text, rules)) names.push("items changed");
  return names.filter(Boolean).map((name) => warnings.descriptions[name]);
}

function warningOfSource({ source, text, srcTokens, replaced }, rules, src, tgt) {
  const start = [...source].slice(0, rules.MAX_CHARACTERS).join("");
  const words = start.split(SPACES).filter(hasLetters);
  if (isInCapitals(start, words, rules, src)) return "source in capitals";
  if (isTargetLanguage(words, rules, src, tgt)) return "source in target language";
  const isUnknown = (token) => hasLetters(token) && !src.ids.has(token);
  const nUnknown = srcTokens.filter(isUnknown).length;
  const nWords = srcTokens.filter(hasLetters).length;
  if (nWords && nWords === nUnknown) return "source unknown";
  if (nWords >= rules.MIN_WORDS && nUnknown > nWords / 2) return "source mostly unknown";
  const lower = text.toLowerCase();
  const isCopied = (token) => lower.includes(src.tokenizer.join([token]).toLowerCase());
  const isReplaced = (i) => replaced.some(({ src_position }) => src_position === i);
  const isLost = (token, i) => isUnknown(token) && !isCopied(token) && !isReplaced(i);
  return srcTokens.some(isLost) && "word unknown";
}

function isTargetLanguage(words, rules, src, tgt) {
  if (words.length < rules.MIN_WORDS) return false;
  const gains = words.map((word) => tgt.logProb(word) - src.logProb(word));
  if (sum(gains) <= rules.MIN_MARGIN * words.length) return false;
  const nTarget = words.filter((word, i) => gains[i] > 0 && tgt.known(word).every(Boolean)).length;
  return nTarget >= rules.MIN_TARGET * words.length;
}

// Whether a text, or the start of each of its words, is in capital letters, unlike the training
// data.
function isInCapitals(text, words, rules, src) {
  const count = (letters) => (text.match(letters) ?? []).length;
  const [nUpper, nLower] = [count(/\p{Uppercase}/gu), count(/\p{Lowercase}/gu)];
  const isUpper = nUpper >= Math.max(2, rules.MIN_CAPITALS * (nUpper + nLower));
  const isTitle = words.every((word) => /^\P{L}*[\p{L}&&\p{Uppercase}]/v.test(word));
  if (!isUpper && !(isTitle && words.length >= rules.MIN_TITLE)) return false;
  const lower = text.toLowerCase();
  if (words.length !== 1) {
    return src.logProb(lower) - src.logProb(text) > rules.MIN_MARGIN * words.length;
  }
  const capitalized = lower.replace(/^./u, (first) => first.toUpperCase());
  const isKnown = (form) => String(src.known(form)) === "true"; // as one token
  // "STOP!", but neither "OK!" nor "NASA"
  return !isKnown(text) && (isKnown(lower) || isKnown(capitalized));
}

// Whether tokens occur several times in a row; a single token once more.
function repeats(tokens, { MAX_PERIOD, MAX_REPETITIONS }) {
  for (let period = 1; period <= MAX_PERIOD; period++) {
    const equal = tokens.map((token, i) => (token === tokens[i + period] ? "=" : "≠")).join("");
    const n = period > 1 ? period * (MAX_REPETITIONS - 1) : MAX_REPETITIONS;
    if (equal.includes("=".repeat(n))) return true;
  }
  return false;
}
