// Which translations are probably wrong: as nmt/decoding/warnings.py, without lost sentences, changed items, and lines without words.

const hasLetters = (text) => /\p{L}/u.test(text);
const sumOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0);

// A language by the frequencies of its tokens: those of the vocabulary, with their counts in the training data.
function wordFrequencies(tokenizer, tokens, counts) {
  const total = Math.max(sumOf(counts), 1);
  const logProbs = counts.map((count) => Math.log(Math.max(count, 0.5) / total));
  const known = new Map(tokens.map((token, id) => [token, logProbs[id]]).slice(4)); // after the special tokens
  const unknown = logProbs.reduce((one, other) => Math.min(one, other));
  const logProb = (text) => sumOf(tokenizer.split(text).map((token) => known.get(token) ?? unknown));
  const areKnown = (text) => tokenizer.split(text).filter(hasLetters).map((token) => known.has(token));
  return { tokenizer, known, logProb, areKnown };
}

// Their texts. translation: {source, text, srcTokens, tokens, srcCut, complete, replaced: [{src_position}, ...]}; rules: by Python.
function warningsOf(translation, rules, src, tgt) {
  const { srcTokens, tokens, srcCut, complete } = translation;
  const isRepeating = repeats(tokens, rules) && !repeats(srcTokens, rules);
  const names = [warningOfSource(translation, rules, src, tgt), srcCut && "source cut", !complete && "output cut"];
  return [...names, isRepeating && "output repeats"].filter(Boolean).map((name) => rules.descriptions[name]);
}

function warningOfSource({ source, text, srcTokens, replaced }, rules, src, tgt) {
  const start = [...source].slice(0, rules.MAX_CHARACTERS).join("");
  const words = start.split(SPACES).filter(hasLetters);
  if (isInCapitals(start, words, rules, src)) return "source in capitals";
  const gains = words.map((word) => tgt.logProb(word) - src.logProb(word));
  const isProbable = words.length >= rules.MIN_WORDS && sumOf(gains) > rules.MIN_MARGIN * words.length;
  const nTarget = words.filter((word, i) => gains[i] > 0 && tgt.areKnown(word).every(Boolean)).length;
  if (isProbable && nTarget >= rules.MIN_TARGET * words.length) return "source in target language";
  const unknown = srcTokens.filter((token) => hasLetters(token) && !src.known.has(token));
  const nWords = srcTokens.filter(hasLetters).length;
  if (nWords && nWords === unknown.length) return "source unknown";
  if (nWords >= rules.MIN_WORDS && unknown.length > nWords / 2) return "source mostly unknown";
  const isCopied = (token) => text.toLowerCase().includes(src.tokenizer.join([token]).toLowerCase());
  const isReplaced = (i) => replaced.some((each) => each.src_position === i);
  return srcTokens.some((token, i) => unknown.includes(token) && !isCopied(token) && !isReplaced(i)) && "word unknown";
}

// Whether a text, or the start of each of its words, is in capital letters, unlike the training data.
function isInCapitals(text, words, rules, src) {
  const [nUpper, nLower] = [/\p{Uppercase}/gu, /\p{Lowercase}/gu].map((letters) => (text.match(letters) ?? []).length);
  const isUpper = nUpper >= Math.max(2, rules.MIN_CAPITALS * (nUpper + nLower));
  const isTitle = words.length >= rules.MIN_TITLE && words.every((word) => /^\P{L}*[\p{L}&&\p{Uppercase}]/v.test(word));
  if (!isUpper && !isTitle) return false;
  const lower = text.toLowerCase();
  if (words.length !== 1) return src.logProb(lower) - src.logProb(text) > rules.MIN_MARGIN * words.length;
  const capitalized = lower.replace(/^./u, (first) => first.toUpperCase());
  const [given, ...others] = [text, lower, capitalized].map((form) => String(src.areKnown(form)) === "true"); // one, known
  return !given && others.includes(true); // "STOP!", but neither "OK!" nor "NASA"
}

// Whether tokens occur several times in a row; a single token once more.
function repeats(tokens, { MAX_PERIOD, MAX_REPETITIONS }) {
  return Array.from({ length: MAX_PERIOD }, (_, i) => i + 1).some((period) => {
    const equal = tokens.map((token, i) => token === tokens[i + period] ? "=" : "≠").join("");
    return equal.includes("=".repeat(period > 1 ? period * (MAX_REPETITIONS - 1) : MAX_REPETITIONS));
  });
}
