// Text to tokens and back, as nmt/text/tokenizers.py; and the sentences of a text, as nmt/extras/texts/sentences.py.
// Characters that are newer than the Unicode version of Python or of the browser may differ.

const SPACE = "▁";
const JOINER = "￭";
const INVISIBLE =
  /[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+/gu;
const SPACES = /[\p{White_Space}\x1c-\x1f]+/gu; // what is white space in Python

const oneLine = (text) => text.replace(SPACES, " ").replace(/^ | $/g, "");
// One line in Unicode NFC without invisible characters.
const normalize = (text) => oneLine(text.replace(INVISIBLE, "")).normalize("NFC");

// Whether a line is its own translation: it has no letters, and no foreign sign such as "。". notCopied: such signs; or null.
function isCopied(text, notCopied) {
  if (notCopied === null || /\p{L}/u.test(text)) return false;
  return /^[\x00-\x7f]*$/.test(text) || ![...notCopied].some((sign) => text.includes(sign));
}

// Words (spaCy's rules), bpe or unigram (sentencepiece's models), or characters.
class Tokenizer {
  // settings: {kind, lowercase}; data: [[piece, score], ...] for subwords, spaCy's rules for words, null for characters.
  constructor(settings, data) {
    this.kind = settings.kind;
    this.lowercase = settings.lowercase;
    [this.mark, this.lookAlike] = this.kind === "words" ? [JOINER, "■"] : [SPACE, "_"];
    if (this.kind === "words") {
      this.rules = new WordRules(data);
    } else if (data) {
      this.scores = new Map(data.map(([piece, score]) => [piece, Math.fround(score)]));
      this.longest = Math.max(...data.map(([piece]) => piece.length));
      this.unknown = Math.fround(Math.min(...this.scores.values()) - 10);
    }
  }

  // The text that split splits, and that join restores.
  normalize(text) {
    text = normalize(text);
    return (this.lowercase ? normalize(text.toLowerCase()) : text).replaceAll(this.mark, this.lookAlike);
  }

  split(text) {
    text = this.normalize(text);
    if (!text) return [];
    if (this.kind === "words") return this.rules.split(text);
    const characters = [...text.replaceAll(" ", SPACE)];
    if (this.kind === "characters") return characters;
    return this.kind === "bpe" ? this.#mergePairs([SPACE, ...characters]) : this.#findBestPieces([SPACE, ...characters]);
  }

  // The pair of neighbors with the best score becomes one piece, the first pair of equals, until no pair is a piece.
  #mergePairs(pieces) {
    const scoreOf = (i) => this.scores.get(pieces[i] + pieces[i + 1]) ?? -Infinity;
    const scores = pieces.slice(1).map((_, i) => scoreOf(i)); // of each pair
    for (;;) {
      const best = scores.reduce((best, score, i) => (score > scores[best] ? i : best), 0);
      if ((scores[best] ?? -Infinity) === -Infinity) return pieces;
      pieces.splice(best, 2, pieces[best] + pieces[best + 1]);
      scores.splice(best, 1);
      if (best > 0) scores[best - 1] = scoreOf(best - 1);
      if (best < scores.length) scores[best] = scoreOf(best);
    }
  }

  // The most probable pieces (Viterbi), in float32 as sentencepiece computes.
  #findBestPieces(characters) {
    const best = new Float32Array(characters.length + 1).fill(-Infinity); // score of the pieces that end here
    const starts = new Int32Array(characters.length + 1); // of the last of these pieces
    best[0] = 0;
    for (let start = 0; start < characters.length; start++) {
      let piece = "";
      for (let end = start + 1; end <= characters.length && piece.length < this.longest; end++) {
        piece += characters[end - 1];
        const score = this.scores.get(piece) ?? (end === start + 1 ? this.unknown : -Infinity);
        const total = Math.fround(best[start] + score);
        if (total > best[end]) [best[end], starts[end]] = [total, start];
      }
    }
    const pieces = [];
    for (let end = characters.length; end > 0; end = starts[end]) pieces.push(characters.slice(starts[end], end).join(""));
    return pieces.reverse();
  }

  // Text on one line from any tokens.
  join(tokens) {
    if (this.kind !== "words") return oneLine(tokens.join("").replaceAll(SPACE, " "));
    return oneLine(tokens.map((token) => token.startsWith(JOINER) ? token.slice(1) : token && ` ${token}`).join(""));
  }

  // The tokens of the text in its upper and lower case; a token whose letters cannot be found stays as it is.
  surfaceForms(text, tokens) {
    const normalized = this.normalize(text);
    const [characters, written] = [[...normalized], [...normalize(text)]];
    // What is written for each character: a letter that becomes several stands at the first of them.
    let letters = written.flatMap((letter) => [...letter.toLowerCase()].map((_, i) => i ? "" : letter));
    if (letters.length !== characters.length) letters = written.length === characters.length ? written : characters;
    letters = characters.flatMap((character, i) => character.length > 1 ? [letters[i], ""] : [letters[i]]); // per UTF-16 unit
    let position = 0;
    return tokens.map((token) => {
      const plain = this.join([token]);
      const start = normalized.indexOf(plain, position);
      if (start < 0 || !plain || !token.endsWith(plain)) return token;
      position = start + plain.length;
      const surface = letters.slice(start, position).join("");
      return token.slice(0, -plain.length) + (surface.toLowerCase() === plain.toLowerCase() ? surface : plain);
    });
  }
}

// Regular expressions that Python wrote as [source, flags] become RegExp; further values stay as they are.
function readRules(rules) {
  return Object.fromEntries(Object.entries(rules).map(([name, value]) => [name, Array.isArray(value) ? new RegExp(...value) : value]));
}

// Without case, "İ" and "ı" are an "i" in Python.
function isMatch(regExp, text) {
  return regExp !== null && regExp.test(regExp.ignoreCase ? text.replace(/[İı]/g, "i") : text);
}

// spaCy's tokenizer: exceptions have their own tokens; prefixes, suffixes and infixes are cut off from all other words.
class WordRules {
  // exceptions: {text: its tokens}; patterns: the tokens "a b" of exceptions that the rules cut; rules: regular expressions.
  constructor({ exceptions, patterns, ...rules }) {
    this.rules = readRules(rules);
    this.exceptions = new Map(Object.entries(exceptions));
    this.patterns = new Set(patterns);
    this.longest = Math.max(0, ...patterns.map((pattern) => pattern.split(" ").length));
  }

  // Words and signs; the mark says that no space stands before a token.
  split(text) {
    const parts = text.split(" ").flatMap((chunk) => this.#cut(chunk).map((word, i) => ({ words: [word], space: i ? "" : " " })));
    // Parts that together are an exception ("z", "." for "z."): the longest first.
    const spans = parts.flatMap((_, start) => Array.from({ length: this.longest }, (_, i) => parts.slice(start, start + i + 1)))
      .filter((span) => this.patterns.has(span.map(({ words }) => words[0]).join(" ")));
    const taken = new Set();
    for (const span of spans.sort((one, other) => other.length - one.length)) {
      const tokens = this.exceptions.get(span.map(({ words, space }) => space + words[0]).join("").trimStart());
      const isFree = !taken.has(span[0]) && !taken.has(span.at(-1));
      if (tokens && isFree) span.forEach((part, i) => (part.words = i ? [] : tokens));
      span.forEach((part) => taken.add(part));
    }
    return parts.flatMap(({ words, space }) => words.map((word, i) => i || !space ? JOINER + word : word));
  }

  // The tokens of a text without spaces.
  #cut(text) {
    const { prefix_search, suffix_search, infix_finditer, token_match, url_match } = this.rules;
    const [before, after] = [[], []];
    for (let last = ""; text !== last && !isMatch(token_match, text) && !this.exceptions.has(text);) {
      last = text;
      const start = prefix_search.exec(text)?.[0].length ?? 0;
      const isException = start && this.exceptions.has(text.slice(start));
      const end = text.length - (isException ? 0 : suffix_search.exec(text.slice(start))?.[0].length ?? 0);
      const isStem = end < text.length && this.exceptions.has(text.slice(0, end));
      if (end < text.length) after.unshift(text.slice(end));
      if (start && !isStem) before.push(text.slice(0, start));
      text = text.slice(isStem ? 0 : start, end);
    }
    const isWhole = isMatch(token_match, text) || isMatch(url_match, text);
    return [...before, ...(this.exceptions.get(text) ?? (isWhole ? [text] : cutInfixes(text, infix_finditer))), ...after].filter(Boolean);
  }
}

// A text in parts: what `infix` finds, except at the start, and what stands between.
function cutInfixes(text, infix) {
  const found = [...text.matchAll(infix)].filter(({ index }) => index > 0);
  const ends = [0, ...found.map((match) => match.index + match[0].length)];
  return ends.flatMap((end, i) => [text.slice(end, found[i]?.index), found[i]?.[0] ?? ""]);
}

// The first character of each sentence of a text, and the one after its last. data: the rules that Python wrote.
function findSentences(text, data) {
  const rules = readRules(data);
  const isLast = ([feed, blankLine, tab], index) => blankLine || tab || !/^\p{Lowercase}/u.test(text.slice(index + feed.length));
  const feeds = [...text.matchAll(rules.feed)].filter((match) => isLast(match, match.index));
  return [0, ...feeds.map((match) => match.index + match[0].length)].flatMap((start, i) => {
    const line = text.slice(start, feeds[i]?.index);
    const ends = [...findEnds(line, rules), [line.length]];
    return ends.map(([end], j) => [start + (ends[j - 1]?.[1] ?? 0), start + end]);
  });
}

// As find_ends of nmt/text/sentences.py: [end, start of the next sentence], in order.
function findEnds(text, rules) {
  const toNumber = (digits) => Number([...digits].map((digit) => [...rules.digits].indexOf(digit) % 10).join(""));
  const numbers = [...text.matchAll(rules.number)];
  const isList = numbers[0]?.index === 0 && numbers.every(([, digits], i) => toNumber(digits) === i + 1);
  const items = isList ? numbers.map(({ index }) => index) : [];
  const [starts, found] = [new Set([0, ...items]), new Map()];
  const isLower = /\p{Lowercase}/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text);
  for (const match of text.matchAll(rules.end)) {
    const [all, word, mark, closing, opening] = match;
    const isItem = starts.has(match.index) && /^\p{Nd}{1,2}$/u.test(word); // of a list
    if (isItem || !isEnd(match, rules, isLower)) continue;
    const next = match.index + all.length - opening.length;
    found.set(match.index + (word + mark + closing).length, next);
    starts.add(next);
  }
  for (const match of [...text.matchAll(rules.wide), ...text.matchAll(rules.tight)]) {
    const end = match.index + match[0].length;
    found.set(end, end + text.slice(end).match(/^[\p{White_Space}\x1c-\x1f]*/u)[0].length);
  }
  for (const index of items.slice(1)) found.set(text.slice(0, index).match(/^.*[^\p{White_Space}\x1c-\x1f]/su)[0].length, index);
  return [...found].sort(([one], [other]) => one - other);
}

function isEnd(match, rules, isLower) {
  const [all, word, mark, closing, opening, following] = match;
  const begins = rules.begins.test(match.input.slice(match.index + all.length));
  if (/^\p{Lowercase}/u.test(following) && (!isLower || mark.length > 1)) return false;
  if ((mark.endsWith("..") || mark === "…") && following === "I") return false;
  if (closing && !opening) return mark === "." || begins; // "Stop!" Tom said.
  if (mark !== ".") return true;
  const length = [...word].length;
  if (/^\p{Nd}+$/u.test(word)) return length > 2 || !rules.ordinals;
  if (length === 1) return /^\p{Lowercase}/u.test(word) && begins;
  return match.index + length > 0 && !isMatch(rules.title, word);
}
