// The translations of source tokens that become more probable, as nmt/model/lexicon.py.

class Lexicon {
  // tensors: the tables of a Lexicon of Python, by name.
  constructor(tensors) {
    const { word_keys, keys } = Object.assign(this, tensors);
    this.places = new Map(Array.from(word_keys.data, (key, i) => [key, keys.data.length + i]));
  }

  // The row of the tables for each token: that of its word, if there is one.
  rowsOf(source) {
    if (!this.places.size) return source;
    let word;
    const words = source.map((id, i) => {
      const begins = i === 0 || this.begins.data[id] || this.ends.data[source[i - 1]];
      if (begins) word = { key: 0n, length: 0 };
      const power = BASE ** BigInt(Math.min(word.length, MAX_CHARACTERS - 1));
      word.key = BigInt.asIntN(64, word.key + this.keys.data[id] * power);
      word.length += this.lengths.data[id];
      return word;
    });
    return words.map(({ key }, i) => this.places.get(key) ?? source[i]);
  }

  // The ids [B, U] of the translations of sources [B][S], and the probability [B, S, U] of each
  // given each source token.
  lookUp(sources) {
    const [[{ length: nTokens }], [, k]] = [sources, this.ids.dims];
    const dims = [sources.length, nTokens];
    const rows = idTensor(sources.map((source) => this.rowsOf(source)).flat(), dims);
    const look = (table) => OPERATORS.Gather([table, rows], {}).data;
    const [ids, probabilities] = [this.ids, this.probabilities].map(look);
    const columns = sources.map((_, i) => [...new Set(part(ids, i, nTokens * k))]);
    const n = Math.max(...columns.map(({ length }) => length));
    const padded = columns.flatMap((column) => Object.assign(Array(n).fill(PAD), column));
    const table = new Float32Array(sources.length * nTokens * n);
    ids.forEach((id, i) => {
      const column = columns[Math.floor(i / nTokens / k)].indexOf(id);
      table[Math.floor(i / k) * n + column] = probabilities[i];
    });
    const translations = { data: table, dims: [sources.length, nTokens, n] };
    return { bias_ids: idTensor(padded, [sources.length, n]), "memory.translations": translations };
  }
}
