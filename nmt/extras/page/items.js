// What a translation lacks of its source, as nmt/texts/differences.py: without what it has too
// many, and the order of placeholders.

// Whether a placeholder, tag, address, emoji or number is missing. Patterns and numbers have their
// names in Python.
function lacksItems(source, text, { items, sentences }) {
  const hasKeys = [source, text].every((each) => each.split("_").length === 2); // "Sna_p to"
  const isItem = (item) => !hasKeys || !_WITH_KEY.test(item);
  const form = (item) => (item.startsWith("%") ? item.replace(_POSITION, "") : item);
  const isMissing = items.some((pattern) => {
    const find = (where) => (where.match(new RegExp(...pattern)) ?? []).filter(isItem).map(form);
    const left = find(text);
    return find(source).some((item) => !left.includes(item) || !left.splice(left.indexOf(item), 1));
  });
  return isMissing || lacksNumbers(source, text, sentences.digits);
}

// allDigits: of all scripts.
function lacksNumbers(source, text, allDigits) {
  const translation = text.replace(_ORDER, " ").normalize("NFKC");
  const written = translation.replace(_SEPARATOR, "");
  const valueOf = (digits) => toNumber(digits, allDigits);
  const parts = new Set((translation.match(_DIGITS) ?? []).map(valueOf));
  if (_HALF_DAY.test(source) || _HALF_DAY.test(translation)) {
    for (const part of [...parts]) if (part < 24) parts.add((part + 12) % 24);
  }
  const hasMyriads = _MYRIADS.test(source + translation);
  return (source.replace(_ORDER, " ").match(_NUMBER) ?? []).some((match) => {
    const number = match.normalize("NFKC");
    const groups = number.match(_DIGITS);
    const digits = groups.join("");
    const isWritten = hasMyriads
      ? written.includes(digits.replace(/0+$/, ""))
      : digits.length > 2 && written.includes(digits);
    if (groups.length === 2 && groups[1] === "00") groups.pop(); // "4:00" may become "4"
    const lost = groups.map(valueOf).filter((group) => !parts.has(group));
    const isDate = groups.length === 3 && groups.some(({ length }) => length === 4);
    const isMonth = isDate && lost.length === 1 && lost[0] <= 12; // which may become a word
    const isSmall = number === digits && valueOf(number) <= MAX_WORD;
    return lost.length > 0 && !isWritten && !isMonth && !isSmall;
  });
}
