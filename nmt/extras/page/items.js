// What a translation lacks of its source, as nmt/texts/differences.py: without what it has too
// many, and the order of placeholders.

// Whether a placeholder, tag, address, emoji or number is missing. Patterns and numbers have their
// names in Python.
function lacksItems(source, text, { items, sentences }) {
  const hasKeys = [source, text].every((each) => each.split("_").length === 2); // "Sna_p to"
  const isNumbered = (source + text).search(_ORDER) >= 0; // %s counts as %1$s
  const find = (where) => {
    const plain = _FORMS.test(where) ? where.replace(_BRANCH, " ") : where;
    const found = items.flatMap((pattern) => [...plain.matchAll(new RegExp(...pattern))]);
    let nValues = 0;
    return found
      .sort((one, other) => one.index - other.index)
      .map(([item]) => {
        const isUnnumbered = isNumbered && _UNNUMBERED.test(item);
        return isUnnumbered ? `%${++nValues}$${item.slice(1)}` : item;
      })
      .filter((item) => !hasKeys || !_WITH_KEY.test(item));
  };
  const left = countOf(find(text));
  return (
    find(source).some((item) => !take(left, item)) || lacksNumbers(source, text, sentences.digits)
  );
}

const countOf = (values) =>
  values.reduce((counts, each) => counts.set(each, (counts.get(each) ?? 0) + 1), new Map());

// Whether there is one more of a value, which is then gone.
function take(counts, value) {
  const n = counts.get(value) ?? 0;
  counts.set(value, n - 1);
  return n > 0;
}

// allDigits: of all scripts.
function lacksNumbers(source, text, allDigits) {
  const plain = (where) =>
    where.normalize("NFKC").replace(/\p{Nd}/gu, (digit) => toNumber(digit, allDigits));
  const digitsOf = (where) => where.match(_DIGITS) ?? [];
  const translation = plain(text.replace(_ORDER, " "));
  const hasMyriads = (source + text).search(_MYRIADS) >= 0;
  const written = translation.replace(_MYRIADS, "").replace(_SEPARATOR, "");
  const wholes = countOf((translation.match(_NUMBER) ?? []).map((each) => digitsOf(each).join("")));
  for (const [digits, n] of countOf(digitsOf(written))) {
    wholes.set(digits, Math.max(n, wholes.get(digits) ?? 0));
  }
  const parts = countOf(digitsOf(translation).map(BigInt));
  if (_HALF_DAY.test(source) || _HALF_DAY.test(translation)) {
    for (const [part, n] of [...parts]) {
      const other = (part + 12n) % 24n;
      if (part < 24n) parts.set(other, n + (parts.get(other) ?? 0));
    }
  }
  const negative = new Set([...translation.matchAll(_NEGATIVE)].map((match) => BigInt(match[1])));
  return (source.replace(_ORDER, " ").match(_NUMBER) ?? []).some((match) => {
    const number = plain(match);
    const groups = digitsOf(number);
    const digits = groups.join("");
    if (groups.length === 2 && groups[1] === "00") groups.pop(); // "4:00" may become "4"
    const hasWhole = take(wholes, digits) && digits.length > 2;
    const isWritten = hasWhole || (hasMyriads && written.includes(digits.replace(/0+$/, "")));
    const lost = groups.map(BigInt).filter((group) => !take(parts, group));
    const isDate = groups.length === 3 && groups.some(({ length }) => length === 4);
    const isMonth = isDate && lost.length === 1 && lost[0] <= 12n; // which may become a word
    const isSmall = number === digits && Number(number) <= MAX_WORD;
    const lacksSign = /^[-−]/.test(number) && !negative.has(BigInt(groups[0]));
    if (lacksSign && !_BELOW.test(translation)) return true;
    return lost.length > 0 && !isWritten && !isMonth && !isSmall;
  });
}
