// Beam search for one sentence, as nmt/decoding/search.py; and the steps along a translation.

const STEPS_AT_ONCE = 10; // between two calls of pause, see worker.js

const idTensor = (ids, dims) => ({ data: Int32Array.from(ids), dims });

// The graphs of a model, see nmt/model/graphs.py. B: sources, R: hypotheses.
class Model {
  constructor({ encoder, step, output, lexicon, size }, weights) {
    if (weights.byteLength !== size) throw new Error("weights are missing");
    this.encoder = new Graph(encoder, weights);
    this.decoder = new Graph(step, weights);
    this.output = new Graph(output, weights);
    this.lexicon = lexicon && new Lexicon(tensorsOf(lexicon, weights));
  }

  // Sources in ids -> memory and state: tensors by name, with a row for each source.
  encode(sources) {
    const lengths = sources.map((source) => source.length + 1);
    const longest = Math.max(...lengths);
    const rows = sources.map((source) =>
      Array.from({ length: longest }, (_, i) => source[i] ?? (i === source.length ? EOS : PAD)),
    );
    const src = idTensor(rows.flat(), [sources.length, longest]);
    const encoded = this.encoder.run({ src, src_lengths: idTensor(lengths, [sources.length]) });
    return { ...encoded, ...this.lexicon?.lookUp(rows) };
  }

  // The decoder reads the last tokens `ids` [R] of the hypotheses, after `position` steps.
  // words(row): the k most probable next words; logProb(row, id): of any; attention(row): [S];
  // after(rows): memory and state of these hypotheses for the next step.
  step(encoded, ids, position, k) {
    const n = ids.length;
    const given = { ids: idTensor(ids, [n]), position: idTensor([position], []) };
    const after = this.decoder.run({ ...encoded, ...given });
    const { bias_ids: words } = encoded; // [B, U], of one source or of as many as there are ids
    const bias_ids = words && spread(words, words.dims.with(0, n));
    const { log_probs } = this.output.run({ ...after, bias_ids });
    const rowOf = ({ data, dims }, row) => part(data, row, dims[1]);
    const logProb = (row, id) => rowOf(log_probs, row)[id];
    return {
      logProb,
      words: (row) =>
        largest(rowOf(log_probs, row), k).map((id) => ({ id, own: logProb(row, id) })),
      attention: (row) => [...rowOf(after.attention, row)],
      after: (rows) => {
        const index = idTensor(rows, [rows.length]);
        const names = Object.keys(encoded).filter((name) => name.startsWith("state."));
        const next = (name) => after[name.replace("state.", "next.")];
        const states = names.map((name) => [name, OPERATORS.Gather([next(name), index], {})]);
        return { ...encoded, ...Object.fromEntries(states) };
      },
    };
  }
}

// The positions of the k largest values, in order; of equal ones, the first.
function largest(values, k) {
  const chosen = [];
  for (let i = 0; i < values.length; i++) {
    if (chosen.length === k && values[i] <= values[chosen[k - 1]]) continue;
    const place = chosen.findIndex((other) => values[i] > values[other]);
    chosen.splice(place < 0 ? k : place, 0, i);
    chosen.length = Math.min(chosen.length, k);
  }
  return chosen;
}

// The best hypotheses for `source` that begin with `prefix`, both in ids, and all steps of the
// beam. A node of a step is a hypothesis up to a token: {id, own (log-probability of the token),
// logProb (of all), parent, attention, ends, complete, score}.
async function search(model, source, options, nBest, prefix = []) {
  const wanted = Math.trunc(options.max_length_ratio * (source.length + 1));
  const maxLength = Math.max(wanted, prefix.length) + EXTRA_TOKENS;
  const minLength = Math.trunc(options.min_length_ratio * source.length);
  const penalty = (length) =>
    (options.length_formula === "power" ? length : (5 + length) / 6) ** options.length_penalty;
  let encoded = model.encode([source]);
  let open = [{ id: SOS, logProb: 0 }];
  const finished = [];
  let nComplete = 0;
  let minScore = -Infinity; // a complete hypothesis needs a higher score to be among the best
  const steps = [];
  for (let length = 1; open.length; length++) {
    if (length % STEPS_AT_ONCE === 0) await pause();
    const banned = [PAD, SOS];
    if (options.forbid_unknown) banned.push(UNK);
    if (length <= minLength) banned.push(EOS);
    const k = Math.min(options.beam + banned.length, options.words);
    const ids = open.map(({ id }) => id);
    const step = model.step(encoded, ids, length - 1, k);
    const candidates = open.flatMap((parent, row) => {
      const best = step.words(row).filter(({ id }) => !banned.includes(id));
      const forced = prefix[length - 1] ?? (best.length ? undefined : EOS); // where all is banned
      const words = forced === undefined ? best : [{ id: forced, own: step.logProb(row, forced) }];
      return words.map((word) => ({ ...word, logProb: parent.logProb + word.own, parent, row }));
    });
    const chosen = candidates.sort((a, b) => b.logProb - a.logProb).slice(0, options.beam);
    for (const node of chosen) {
      node.attention = step.attention(node.row);
      node.complete = node.id === EOS;
      node.ends = node.complete || length >= maxLength;
      node.score = node.logProb / penalty(length);
      if (!node.ends) continue;
      if (node.complete) nComplete++;
      if (node.score <= minScore && node.complete) continue;
      finished.push(node);
      finished.sort((a, b) => b.complete - a.complete || b.score - a.score).splice(nBest);
      if (finished[nBest - 1]?.complete) minScore = finished[nBest - 1].score;
    }
    steps.push(chosen);
    open = chosen.filter(({ ends }) => !ends);
    // With enough complete ones, longer ones hardly improve.
    const longest = nComplete >= options.beam ? length + 1 : maxLength;
    const highest = Math.min(0, Math.max(...open.map(({ logProb }) => logProb)));
    if (highest / penalty(longest) <= minScore) break;
    encoded = step.after(open.map(({ row }) => row));
  }
  return { best: finished, steps };
}

// The nodes from the first token to `end`.
function pathTo(end) {
  return end.parent ? [...pathTo(end.parent), end] : [];
}

// The decoder reads the tokens `ids`, the same for all sources: its steps, of which each has the
// words for the next token.
function* follow(model, sources, ids, k = 1) {
  let encoded = model.encode(sources);
  for (const [position, id] of [SOS, ...ids].entries()) {
    const last = sources.map(() => id);
    const step = model.step(encoded, last, position, k);
    yield step;
    encoded = step.after([...sources.keys()]);
  }
}
