// What a translation lacks of its source, as nmt/decoding/items.py: without what it has too many, and the order of placeholders.

const LARGEST_WORD = 12; // larger numbers are seldom written as words

// Whether a placeholder, tag, address, emoji or number is missing. patterns: of items.py, [source, flags] of regular expressions.
function lacksItems(source, text, patterns) {
  const hasKeys = [source, text].every((each) => each.split("_").length === 2); // before the key of a menu: "Sna_p to"
  const isItem = (item) => !hasKeys || !/^[\p{L}\p{N}]+_[\p{L}\p{N}]+$/u.test(item);
  const withoutPlace = (item) => item.replace(/^%\d+\$/, "%"); // %2$s is %s at another place
  const find = (pattern, where) => (where.match(new RegExp(...pattern)) ?? []).filter(isItem).map(withoutPlace);
  const isMissing = patterns.some((pattern) => {
    const left = find(pattern, text);
    return find(pattern, source).some((item) => !left.includes(item) || !left.splice(left.indexOf(item), 1));
  });
  return isMissing || (!/[万萬億亿만억]/.test(source + text) && lacksNumbers(source.normalize("NFKC"), text.normalize("NFKC")));
}

function lacksNumbers(source, text) {
  const isHalfDay = [source, text].some((each) => /\d\s?[ap]\.?\s?m\b/i.test(each)); // 2:30 p.m. is 14:30
  const digits = text.replace(/(?<=\d)[\s.,:/'’-](?=\d)/g, "");
  const parts = (text.match(/\d+/g) ?? []).map(Number);
  const isFound = (part) => parts.includes(part) || (isHalfDay && part < 24 && parts.includes((part + 12) % 24));
  return (source.match(/\d+(?:[.,:/'’-]\d+)*/g) ?? []).some((number) => {
    const groups = number.match(/\d+/g);
    const isWritten = groups.join("").length > 2 && digits.includes(groups.join(""));
    const isDate = groups.length === 3 && groups.some((group) => group.length === 4); // its month may become a word
    const lost = groups.filter((group, i) => !isFound(Number(group)) && !(i === 1 && groups.length === 2 && group === "00")).map(Number);
    const isSmall = groups.length === 1 && lost[0] <= LARGEST_WORD;
    return lost.length > 0 && !isWritten && !isSmall && !(isDate && lost.length === 1 && lost[0] <= 12);
  });
}
