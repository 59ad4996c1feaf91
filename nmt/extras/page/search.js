// Beam search for one sentence, as nmt/decoding/search.py; and the steps along a given translation.

const [PAD, UNK, SOS, EOS] = [0, 1, 2, 3];
const EXTRA_TOKENS = 10; // that any translation may have beyond max_length_ratio
const STEPS_AT_ONCE = 10; // between two pauses, in which the request may be cancelled

const idTensor = (ids, dims) => new Tensor(BigInt64Array.from(ids, BigInt), dims);

// The graphs of a model, see graphs.py. B: sources, R: hypotheses.
class Model {
  constructor(encoder, decoder) {
    Object.assign(this, { encoder, decoder });
  }

  // Sources in ids -> {memory, state}: tensors by name, with a row for each source.
  encode(sources) {
    const lengths = sources.map((source) => source.length + 1);
    const longest = Math.max(...lengths);
    const ids = sources.flatMap((source) => [...source, EOS, ...new Array(longest - source.length - 1).fill(PAD)]);
    const src = idTensor(ids, [sources.length, longest]);
    const tensors = Object.entries(this.encoder.run({ src, src_lengths: idTensor(lengths, [sources.length]) }));
    const part = (prefix) => Object.fromEntries(tensors.filter(([name]) => name.startsWith(prefix)));
    return { memory: part("memory."), state: part("state.") };
  }

  // The decoder reads the last tokens `ids` [R] of the hypotheses, after `position` steps.
  // words(row): the k most probable next words; logProb(row, id): of any; attention(row): [S]; state: the next one.
  step({ memory, state }, ids, position, k) {
    const rows = idTensor(ids.keys(), [ids.length]);
    const given = { ids: idTensor(ids, [ids.length]), rows, position: idTensor([position], []), k: idTensor([k], []) };
    const outputs = this.decoder.run({ ...memory, ...state, ...given });
    const { best_ids: best, logits, log_norm: norms } = outputs;
    const logProb = (row, id) => logits.data[row * logits.dims[1] + id] - norms.data[row];
    const rowOf = (tensor, row) => Array.from(tensor.data.subarray(row * tensor.dims[1], (row + 1) * tensor.dims[1]), Number);
    const next = Object.entries(outputs).filter(([name]) => name.startsWith("next."));
    return {
      logProb,
      words: (row) => rowOf(best, row).map((id) => ({ id, logProb: logProb(row, id) })),
      attention: (row) => rowOf(outputs.attention, row),
      state: Object.fromEntries(next.map(([name, tensor]) => [name.replace("next.", "state."), tensor])),
    };
  }
}

// The rows of each tensor of a state.
function selectRows(state, rows) {
  return Object.fromEntries(Object.entries(state).map(([name, { data, dims }]) => {
    const size = data.length / dims[0];
    const selected = new data.constructor(rows.length * size);
    rows.forEach((row, i) => selected.set(data.subarray(row * size, (row + 1) * size), i * size));
    return [name, new Tensor(selected, [rows.length, ...dims.slice(1)])];
  }));
}

// The best hypotheses for `source` that begin with `prefix`, both in ids, and all steps of the beam. A node of a step is a
// hypothesis up to a token: {id, own (log-probability of the token), logProb (of all), parent, attention, ends, complete, score}.
async function search(model, source, options, nBest, prefix, pause) {
  const srcLength = source.length + 1;
  const maxLength = Math.max(Math.trunc(options.max_length_ratio * srcLength), prefix.length) + EXTRA_TOKENS;
  const minLength = Math.trunc(options.min_length_ratio * source.length);
  const penalty = (length) => (options.length_formula === "power" ? length : (5 + length) / 6) ** options.length_penalty;
  let encoded = model.encode([source]);
  let open = [{ id: SOS, logProb: 0 }];
  let finished = [];
  let [nComplete, minScore] = [0, -Infinity]; // a complete hypothesis needs a higher score to be among the best
  const steps = [];
  for (let length = 1; open.length; length++) {
    if (length % STEPS_AT_ONCE === 0) await pause();
    const banned = [PAD, SOS, ...(options.forbid_unknown ? [UNK] : []), ...(length <= minLength ? [EOS] : [])];
    const k = Math.min(options.beam + banned.length, options.words);
    const step = model.step(encoded, open.map(({ id }) => id), length - 1, k);
    const candidates = open.flatMap((parent, row) => {
      const best = step.words(row).filter(({ id }) => !banned.includes(id));
      const forced = prefix[length - 1] ?? (best.length ? undefined : EOS); // it ends where everything is banned
      const words = forced === undefined ? best : [{ id: forced, logProb: step.logProb(row, forced) }];
      return words.map(({ id, logProb }) => ({ id, own: logProb, logProb: parent.logProb + logProb, parent, row }));
    });
    const chosen = candidates.sort((a, b) => b.logProb - a.logProb).slice(0, options.beam);
    for (const node of chosen) {
      const complete = node.id === EOS;
      const score = node.logProb / penalty(length);
      Object.assign(node, { attention: step.attention(node.row), complete, ends: complete || length >= maxLength, score });
      if (!node.ends) continue;
      if (complete) nComplete++;
      if (score <= minScore && complete) continue;
      finished = [...finished, node].sort((a, b) => b.complete - a.complete || b.score - a.score).slice(0, nBest);
      if (finished.length === nBest && finished.at(-1).complete) minScore = finished.at(-1).score;
    }
    steps.push(chosen);
    open = chosen.filter(({ ends }) => !ends);
    const longest = nComplete >= options.beam ? length + 1 : maxLength; // with enough of them, longer ones hardly improve
    const bound = Math.min(0, Math.max(...open.map(({ logProb }) => logProb))) / penalty(longest);
    if (bound <= minScore) break;
    encoded = { ...encoded, state: selectRows(step.state, open.map(({ row }) => row)) };
  }
  return { best: finished, steps };
}

// The nodes from the first token to `end`.
function pathTo(end) {
  const nodes = [];
  for (let node = end; node.parent; node = node.parent) nodes.unshift(node);
  return nodes;
}

// The decoder reads the tokens `ids`, the same for all sources: its steps, of which each has the words for the next token.
function* follow(model, sources, ids, k = 1) {
  let encoded = model.encode(sources);
  for (const [position, id] of [SOS, ...ids].entries()) {
    const step = model.step(encoded, sources.map(() => id), position, k);
    yield step;
    encoded = { ...encoded, state: step.state };
  }
}
