// The translations of source tokens that become more probable, as nmt/model/lexicon.py.

class Lexicon {
  // tensors: the tables of a Lexicon of Python, by name.
  constructor(tensors) {
    const { word_keys, keys } = Object.assign(this, tensors);
    this.places = new Map(Array.from(word_keys.data, (key, i) => [key, keys.data.length + i]));
  }

  // The row of the tables for each token of a source: that of its word, if there is one.
  rowsOf(src) {
    if (!this.places.size) return src;
    let word;
    const words = src.map((id, i) => {
      const begins = i === 0 || this.begins.data[id] || this.ends.data[src[i - 1]];
      if (begins) word = { key: 0n, length: 0 };
      const power = BASE ** BigInt(Math.min(word.length, MAX_CHARACTERS - 1));
      word.key = BigInt.asIntN(64, word.key + this.keys.data[id] * power);
      word.length += this.lengths.data[id];
      return word;
    });
    return src.map((id, i) => this.places.get(words[i].key) ?? id);
  }

  // The ids [1, U] of the translations of a source of S tokens, and the probability [1, S, U] of
  // each given each source token.
  lookUp(src) {
    const rows = asTensor(this.rowsOf(src), [src.length]);
    const [ids, probabilities] = [this.ids, this.probabilities].map(
      (table) => OPERATORS.Gather([table, rows]).data,
    );
    const words = [...new Set(ids)];
    const [k, n] = [this.ids.dims[1], words.length];
    const table = new Float32Array(src.length * n);
    ids.forEach((id, i) => {
      table[Math.floor(i / k) * n + words.indexOf(id)] = probabilities[i];
    });
    const translations = { data: table, dims: [1, src.length, n] };
    return { bias_ids: asTensor(words, [1, n]), "memory.translations": translations };
  }
}
