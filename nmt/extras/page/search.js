// Beam search for one sentence, as nmt/decoding/search.py.

const STEPS_AT_ONCE = 10; // between two calls of pause, see worker.js

// The graphs of a model, see nmt/model/graphs.py, for one source. R: hypotheses.
class Model {
  constructor({ encoder, step, output, lexicon, size }, weights) {
    if (weights.byteLength !== size) throw new Error("weights are missing");
    this.encoder = new Graph(encoder, weights);
    this.decoder = new Graph(step, weights);
    this.output = new Graph(output, weights);
    this.lexicon = lexicon && new Lexicon(tensorsOf(lexicon, weights));
  }

  // A source in ids -> memory and state: tensors by name.
  encode(source) {
    const ids = [...source, EOS];
    const src = asTensor(ids, [1, ids.length]);
    const encoded = this.encoder.run({ src, src_lengths: asTensor([ids.length], [1]) });
    return { ...encoded, ...this.lexicon?.lookUp(ids) };
  }

  // The decoder reads the last tokens `ids` [R] of the hypotheses, after `position` steps.
  // words(row, k, banned): the k most probable next words that are not banned; logProb(row, id): of
  // any; attention(row): [S]; after(rows): memory and state of these hypotheses for the next step.
  step(encoded, ids, position) {
    const n = ids.length;
    const given = { ids: asTensor(ids, [n]), position: asTensor([position], []) };
    const outputs = this.decoder.run({ ...encoded, ...given });
    const { bias_ids: words } = encoded; // [1, U]
    const bias_ids = words && spread(words, words.dims.with(0, n));
    const { log_probs } = this.output.run({ ...outputs, bias_ids });
    const rowOf = ({ data, dims }, row) => part(data, row, dims[1]);
    return {
      words: (row, k, banned) => largest(rowOf(log_probs, row), k, banned),
      logProb: (row, id) => rowOf(log_probs, row)[id],
      attention: (row) => [...rowOf(outputs.attention, row)],
      after: (rows) => {
        const index = asTensor(rows, [rows.length]);
        const next = Object.entries(outputs).filter(([name]) => name.startsWith("next."));
        const choose = (tensor) => OPERATORS.Gather([tensor, index]);
        const states = next.map(([name, all]) => [name.replace("next", "state"), choose(all)]);
        return { ...encoded, ...Object.fromEntries(states) };
      },
    };
  }
}

// The positions of the k largest values that are not banned, in order; of equal ones, the first.
function largest(values, k, banned) {
  const chosen = [];
  for (let i = 0; i < values.length; i++) {
    if (values[i] <= values[chosen[k - 1]] || banned.includes(i)) continue;
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
  const minLength = Math.max(1, Math.trunc(options.min_length_ratio * source.length));
  const penalty = (length) => length ** options.length_penalty;
  let encoded = model.encode(source);
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
    const ids = open.map(({ id }) => id);
    const step = model.step(encoded, ids, length - 1);
    const candidates = open.flatMap((parent, row) => {
      const best = step.words(row, options.beam, banned);
      if (length <= prefix.length) best.splice(0, Infinity, prefix[length - 1]);
      return best.map((id) => {
        const own = step.logProb(row, id);
        return { id, own, logProb: parent.logProb + own, parent, row };
      });
    });
    const chosen = candidates.sort((a, b) => b.logProb - a.logProb).slice(0, options.beam);
    for (const node of chosen) {
      node.attention = step.attention(node.row);
      node.complete = node.id === EOS;
      node.ends = node.complete || length >= maxLength;
      node.score = node.logProb / penalty(length);
      if (node.complete) nComplete++;
    }
    finished.push(...chosen.filter(({ ends }) => ends));
    finished.sort((a, b) => b.complete - a.complete || b.score - a.score).splice(nBest);
    if (finished[nBest - 1]?.complete) minScore = finished[nBest - 1].score;
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

// The step in which the decoder has read the tokens `ids`, with the words for the next token.
function stepAfter(model, source, ids) {
  let encoded = model.encode(source);
  let step;
  for (const [position, id] of [SOS, ...ids].entries()) {
    step = model.step(encoded, [id], position);
    encoded = step.after([0]);
  }
  return step;
}
