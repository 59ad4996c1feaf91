// Text to tokens and back, as nmt/text/tokenizers.py. Characters that are newer than the Unicode
// version of Python or of the browser may differ.

const SPACES = /[\p{White_Space}\x1c-\x1f]+/gu; // what is white space in Python

const oneLine = (text) => text.replace(SPACES, " ").replace(/^ | $/g, "");
// One line in Unicode NFC without invisible characters.
const normalize = (text) => oneLine(text.replace(_INVISIBLE, "")).normalize("NFC");

// Words (spaCy's rules), bpe or unigram (sentencepiece's models), or characters.
class Tokenizer {
  // data: spaCy's rules for words, [[piece, score], ...] for subwords, null for characters.
  constructor({ kind, lowercase, data }) {
    Object.assign(this, { kind, lowercase });
    if (kind === "words") {
      this.rules = new WordRules(data);
    } else if (data) {
      this.scores = new Map(data.map(([piece, score]) => [piece, Math.fround(score)]));
      this.longest = Math.max(...data.map(([piece]) => piece.length));
      this.unknown = Math.fround(Math.min(...this.scores.values()) - 10);
    }
  }

  // The text that split splits, and that join restores.
  normalize(text) {
    const written = this.lowercase ? normalize(normalize(text).toLowerCase()) : normalize(text);
    if (this.kind === "words") return written.replaceAll(JOINER, "■");
    return written.replaceAll(SPACE, "_");
  }

  split(text) {
    const normalized = this.normalize(text);
    if (!normalized) return [];
    if (this.kind === "words") return this.rules.split(normalized);
    const characters = [...normalized.replaceAll(" ", SPACE)];
    if (this.kind === "characters") return characters;
    characters.unshift(SPACE);
    return this.kind === "bpe" ? this.#mergePairs(characters) : this.#findBestPieces(characters);
  }

  // The pair of neighbors with the best score becomes one piece, the first pair of equals, until no
  // pair is a piece.
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
    const best = new Float32Array(characters.length + 1).fill(-Infinity); // of pieces that end here
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
    for (let end = characters.length; end > 0; end = starts[end]) {
      pieces.unshift(characters.slice(starts[end], end).join(""));
    }
    return pieces;
  }

  // Text on one line from any tokens.
  join(tokens) {
    if (this.kind !== "words") return oneLine(tokens.join("").replaceAll(SPACE, " "));
    return oneLine(` ${tokens.filter(Boolean).join(" ")}`.replaceAll(` ${JOINER}`, ""));
  }

  // The tokens of the text in its upper and lower case; a token whose letters cannot be found stays
  // as it is.
  surfaceForms(text, tokens) {
    const normalized = this.normalize(text);
    const [characters, written] = [[...normalized], [...normalize(text)]];
    // What is written for each character: a letter that becomes several stands at the first.
    const placed = written.flatMap((letter) =>
      [...letter.toLowerCase()].map((_, i) => (i ? "" : letter)),
    );
    const fits = (list) => list.length === characters.length;
    const letters = [placed, written, characters].find(fits);
    const units = characters.flatMap(({ length }, i) => [letters[i], ""].slice(0, length));
    let position = 0;
    return tokens.map((token) => {
      const plain = this.join([token]);
      const start = normalized.indexOf(plain, position);
      if (start < 0 || !plain || !token.endsWith(plain)) return token;
      position = start + plain.length;
      const surface = units.slice(start, position).join("");
      const isSame = surface.toLowerCase() === plain.toLowerCase();
      return token.slice(0, -plain.length) + (isSame ? surface : plain);
    });
  }
}

// Regular expressions that Python wrote as [source, flags] become RegExp; other values stay.
function readRules(rules) {
  const read = (value) => (Array.isArray(value) ? new RegExp(...value) : value);
  return Object.fromEntries(Object.entries(rules).map(([name, value]) => [name, read(value)]));
}

// Without case, "İ" and "ı" are an "i" in Python.
function isMatch(regExp, text) {
  return regExp !== null && regExp.test(regExp.ignoreCase ? text.replace(/[İı]/g, "i") : text);
}

// spaCy's tokenizer: exceptions have their own tokens; prefixes, suffixes and infixes are cut off
// from all other words.
class WordRules {
  // exceptions: {text: its tokens}; patterns: the tokens "a b" of exceptions that the rules cut;
  // rules: regular expressions.
  constructor({ exceptions, patterns, ...rules }) {
    this.rules = readRules(rules);
    this.exceptions = new Map(Object.entries(exceptions));
    this.patterns = new Set(patterns);
    this.longest = Math.max(0, ...patterns.map((pattern) => pattern.split(" ").length));
  }

  // Words and signs; the mark says that no space stands before a token.
  split(text) {
    const parts = text.split(" ").flatMap((chunk) => {
      return this.#cut(chunk).map((word, i) => ({ word, space: i ? "" : " ", tokens: [word] }));
    });
    // Parts that together are an exception ("z", "." for "z."): the longest first.
    for (let length = this.longest; length > 0; length--) {
      for (let start = 0; start + length <= parts.length; start++) {
        const span = parts.slice(start, start + length);
        if (!this.patterns.has(span.map(({ word }) => word).join(" "))) continue;
        const written = span.map(({ space, word }) => space + word).join("");
        const tokens = this.exceptions.get(written.trimStart());
        if (tokens && !span[0].isTaken && !span.at(-1).isTaken) {
          span.forEach((part, i) => (part.tokens = i ? [] : tokens));
        }
        for (const part of span) part.isTaken = true;
      }
    }
    return parts.flatMap(({ tokens, space }) => {
      return tokens.map((token, i) => (i || !space ? JOINER + token : token));
    });
  }

  // The tokens of a text without spaces.
  #cut(text) {
    const { prefix_search, suffix_search, infix_finditer, token_match, url_match } = this.rules;
    const [before, after] = [[], []];
    let last = "";
    while (text !== last && !isMatch(token_match, text) && !this.exceptions.has(text)) {
      last = text;
      const start = prefix_search.exec(text)?.[0].length ?? 0;
      const isException = start && this.exceptions.has(text.slice(start));
      const suffix = isException ? null : suffix_search.exec(text.slice(start));
      const end = text.length - (suffix?.[0].length ?? 0);
      const isStem = end < text.length && this.exceptions.has(text.slice(0, end));
      if (end < text.length) after.unshift(text.slice(end));
      if (start && !isStem) before.push(text.slice(0, start));
      text = text.slice(isStem ? 0 : start, end);
    }
    const isWhole = isMatch(token_match, text) || isMatch(url_match, text);
    const known =
      this.exceptions.get(text) ?? (isWhole ? [text] : cutInfixes(text, infix_finditer));
    return [...before, ...known, ...after].filter(Boolean);
  }
}

// A text in parts: what `infix` finds, except at the start, and what stands between.
function cutInfixes(text, infix) {
  const found = [...text.matchAll(infix)].filter(({ index }) => index > 0);
  const ends = [0, ...found.map((match) => match.index + match[0].length)];
  return ends.flatMap((end, i) => [text.slice(end, found[i]?.index), found[i]?.[0] ?? ""]);
}
