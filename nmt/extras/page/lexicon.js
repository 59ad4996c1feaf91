// The translations of source tokens that become more probable, as nmt/model/lexicon.py.

class Lexicon {
  // tensors: the tables of a Lexicon of Python, by name.
  constructor(tensors) {
    const { word_keys, keys } = Object.assign(this, tensors);
    this.places = new Map(Array.from(word_keys.data, (key, i) => [key, keys.data.length + i]));
  }

  // The row of the tables for each token of sources [B, S]: that of its word, if there is one.
  rowsOf({ data, dims }) {
    if (!this.places.size) return { data, dims };
    let word;
    const words = Array.from(data, (id, i) => {
      const begins = i === 0 || this.begins.data[id] || this.ends.data[data[i - 1]]; // or a source
      if (begins) word = { key: 0n, length: 0 };
      const power = BASE ** BigInt(Math.min(word.length, MAX_CHARACTERS - 1));
      word.key = BigInt.asIntN(64, word.key + this.keys.data[id] * power);
      word.length += this.lengths.data[id];
      return word;
    });
    return { data: data.map((id, i) => this.places.get(words[i].key) ?? id), dims };
  }

  // The ids [B, U] of the translations of sources [B, S], and the probability [B, S, U] of each
  // given each source token.
  lookUp(src) {
    const [[nSources, nTokens], [, k]] = [src.dims, this.ids.dims];
    const [ids, probabilities] = [this.ids, this.probabilities].map(
      (table) => OPERATORS.Gather([table, this.rowsOf(src)], {}).data,
    );
    const idsOf = (_, i) => [...new Set(part(ids, i, nTokens * k))];
    const columns = Array.from({ length: nSources }, idsOf);
    const n = Math.max(...columns.map(({ length }) => length));
    const padded = columns.flatMap((column) => [...column, ...Array(n - column.length).fill(PAD)]);
    const table = new Float32Array(size(src.dims) * n);
    ids.forEach((id, i) => {
      const column = columns[Math.floor(i / nTokens / k)].indexOf(id);
      table[Math.floor(i / k) * n + column] = probabilities[i];
    });
    const translations = { data: table, dims: [...src.dims, n] };
    return { bias_ids: idTensor(padded, [nSources, n]), "memory.translations": translations };
  }
}
