// The sentences of a line, as nmt/texts/sentences.py without sentencex.

// The first character of each sentence, and the one after its last. data: sentence_rules of
// tokenizers.py.
function findSentences(text, data) {
  const rules = readRules(data);
  const feeds = [...text.matchAll(rules.feed)]; // tabs
  const starts = [0, ...feeds.map((match) => match.index + match[0].length)];
  return starts.flatMap((start, i) => {
    const line = text.slice(start, feeds[i]?.index);
    const ends = [...findEnds(line, rules), [line.length]];
    return ends.map(([end], j) => [start + (ends[j - 1]?.[1] ?? 0), start + end]);
  });
}

// The number that decimal digits of any script write. all: all such digits.
const toNumber = (digits, all) =>
  Number([...digits].map((digit) => [...all].indexOf(digit) % 10).join(""));

// As find_ends of nmt/texts/sentences.py: [end, start of the next sentence], in order.
function findEnds(text, rules) {
  const numbers = [...text.matchAll(rules.number)];
  const isList =
    numbers[0]?.index === 0 &&
    numbers.every(([, digits], i) => toNumber(digits, rules.digits) === i + 1);
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
    found.set(end, text.length - trimStart(text.slice(end)).length);
  }
  for (const index of items.slice(1)) found.set(trimEnd(text.slice(0, index)).length, index);
  return [...found].sort(([one], [other]) => one - other);
}
// As in Python, which knows other white space.
const trimStart = (text) => text.replace(/^[\p{White_Space}\x1c-\x1f]+/u, "");
const trimEnd = (text) => text.replace(/[\p{White_Space}\x1c-\x1f]+$/u, "");

function isEnd(match, rules, isLower) {
  const [all, word, mark, closing, opening, following] = match;
  const begins = rules.begins.test(match.input.slice(match.index + all.length));
  const goesOn =
    (/^\p{Lowercase}/u.test(following) && (!isLower || mark.length > 1)) ||
    ((mark.endsWith("..") || mark === "…") && following === "I");
  if (goesOn && !/^[.…]/.test(opening)) return false; // "Wait... ...and see."
  if (closing && !opening) return mark === "." || begins; // "Stop!" Tom said.
  if (mark !== ".") return true;
  const length = [...word].length;
  if (/^\p{Nd}+$/u.test(word)) return length > 2 || !rules.ordinals;
  if (length === 1) return /^\p{Lowercase}/u.test(word) && begins;
  return match.index + length > 0 && !isMatch(rules.title, word);
}
