// Runs the graphs of a translator: operators of ONNX.

// A tensor is {data, dims}. data: Float32Array, BigInt64Array (int64) or Uint8Array (bool). Only
// constants that Gather and Matrix read have others, and perhaps scales.
const size = (dims) => dims.reduce((product, n) => product * n, 1);
const numbers = (tensor) => Array.from(tensor.data, Number);
const sum = (values) => values.reduce((total, value) => total + value);
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// A tensor as three axes [outer, n, inner], of which the middle one is `axis`.
function around({ dims }, axis) {
  const inner = dims.slice(axis).slice(1);
  return [size(dims.slice(0, axis)), dims.at(axis), size(inner)];
}
const stepsOf = (tensor) => tensor.dims.map((_, axis) => around(tensor, axis)[2]);

// A tensor of these dimensions, of the elements that lie `steps` apart along its axes.
function strided(data, dims, steps, first = 0) {
  const result = new data.constructor(size(dims));
  const last = dims.length - (steps.at(-1) === 1 ? 1 : 0); // neighbours stay together
  const block = size(dims.slice(last));
  let to = 0;
  const copy = (from, axis) => {
    if (axis < last) {
      for (let i = 0; i < dims[axis]; i++) copy(from + i * steps[axis], axis + 1);
    } else if (block === 1) {
      result[to++] = data[from];
    } else {
      result.set(data.subarray(from, from + block), to);
      to += block;
    }
  };
  copy(first, 0);
  return { data: result, dims };
}

function slice(tensor, axis, start, end) {
  const [, , inner] = around(tensor, axis);
  const dims = tensor.dims.with(axis, end - start);
  return strided(tensor.data, dims, stepsOf(tensor), start * inner);
}

function broadcast(dims, others) {
  if (dims.length < others.length) return broadcast(others, dims);
  return dims.map((n, i) => (n === 1 ? (others[others.length - dims.length + i] ?? 1) : n));
}

// A tensor that is repeated along axes where it has size 1.
function spread({ data, dims: own }, dims) {
  if (data.length === size(dims)) return { data, dims };
  if (data.length === 1) return { data: new data.constructor(size(dims)).fill(data[0]), dims };
  const padded = [...Array(dims.length - own.length).fill(1), ...own];
  const steps = stepsOf({ dims: padded }).map((step, axis) => (padded[axis] === 1 ? 0 : step));
  return strided(data, dims, steps);
}

// Tensors that are repeated to the same dimensions: these, and the data of each.
function aligned(tensors) {
  const dims = tensors.reduce((all, tensor) => broadcast(all, tensor.dims), []);
  return [dims, ...tensors.map((tensor) => spread(tensor, dims).data)];
}

const unary =
  (compute) =>
  ([{ data, dims }]) => ({ data: data.map(compute), dims });

// fill: as `compute`, for whole arrays of float32: a loop of its own is ten times as fast as calls
// from a shared one.
function binary(compute, fill, ResultType) {
  return (tensors) => {
    const [dims, x, y] = aligned(tensors);
    const data = new (ResultType ?? x.constructor)(x.length);
    if (fill && x instanceof Float32Array) fill(x, y, data);
    else for (let i = 0; i < data.length; i++) data[i] = compute(x[i], y[i]);
    return { data, dims };
  };
}
const test = (compare) => binary(compare, null, Uint8Array);

function fillSums(x, y, sums) {
  for (let i = 0; i < x.length; i++) sums[i] = x[i] + y[i];
}
function fillDifferences(x, y, differences) {
  for (let i = 0; i < x.length; i++) differences[i] = x[i] - y[i];
}
function fillProducts(x, y, products) {
  for (let i = 0; i < x.length; i++) products[i] = x[i] * y[i];
}

// compute: the values along an axis -> a value.
function reduction(compute) {
  return ([a, chosen], { axes, keepdims = 1 }) => {
    const [axis] = chosen ? numbers(chosen) : axes;
    const [outer, n, inner] = around(a, axis);
    const values = strided(a.data, [outer, inner, n], [n * inner, 1, inner]).data;
    const length = outer * inner;
    const data = a.data.constructor.from({ length }, (_, i) => compute(part(values, i, n)));
    return { data, dims: keepdims ? a.dims.with(axis, 1) : a.dims.toSpliced(axis, 1) };
  };
}

// The positions of the k largest values, in order; of equal ones, the first.
function best(values, k) {
  const chosen = [];
  for (let i = 0; i < values.length; i++) {
    if (chosen.length === k && values[i] <= values[chosen[k - 1]]) continue;
    const place = chosen.findIndex((other) => values[i] > values[other]);
    chosen.splice(place < 0 ? k : place, 0, i);
    chosen.length = Math.min(chosen.length, k);
  }
  return chosen;
}

// A layer of a cell over x [S, B, I], forward or in both directions: its outputs and last states,
// [S, directions, B, H] and [directions, B, H]. `advance` changes the states [H] of a row; it is
// given the parts of the gates from input and hidden state.
function layer(nStates, advance) {
  return ([x, weights, recurrent, { data: bias }, lengths], node) => {
    const [nSteps, nRows] = x.dims;
    const [directions, nGates, hidden] = recurrent.dims;
    node.matrices ??= Array.from({ length: directions }, (_, i) => [
      new Matrix(weights, part(bias, 2 * i, nGates), i),
      new Matrix(recurrent, part(bias, 2 * i + 1, nGates), i),
    ]);
    const n = directions * nRows * hidden;
    const outputs = new Float32Array(nSteps * n);
    const states = Array.from({ length: nStates }, () => new Float32Array(n));
    for (let direction = 0; direction < directions; direction++) {
      const [ofInput, ofHidden] = node.matrices[direction];
      const fromInput = ofInput.multiply(x.data, nSteps * nRows);
      for (let step = 0; step < nSteps; step++) {
        const time = direction ? nSteps - 1 - step : step;
        const before = part(states[0], direction, nRows * hidden);
        const fromHidden = ofHidden.multiply(before, nRows);
        for (let row = 0; row < nRows; row++) {
          if (time >= lengths.data[row]) continue;
          const own = states.map((state) => part(state, direction * nRows + row, hidden));
          const gates = part(fromInput, time * nRows + row, nGates);
          advance(gates, part(fromHidden, row, nGates), ...own);
          outputs.set(own[0], ((time * directions + direction) * nRows + row) * hidden);
        }
      }
    }
    const dims = [directions, nRows, hidden];
    return [{ data: outputs, dims: [nSteps, ...dims] }, ...states.map((data) => ({ data, dims }))];
  };
}

// As in ONNX: (inputs, attributes) -> output, or outputs; and `Linear`, for constant weights. They
// do what nmt/model/graphs.py needs: Squeeze, Unsqueeze and reductions of one axis; LogSoftmax,
// Softmax, TopK and ScatterElements (which adds) along the last axis; Slice with steps of 1.
// program.py reads the names in this table.
const OPERATORS = {
  Abs: unary((x) => (x < 0 ? -x : x)),
  Add: binary((x, y) => x + y, fillSums),
  And: test((x, y) => x && y),
  Cast: ([{ data, dims }], { to }) => {
    if (to === 1) return { data: Float32Array.from(data, Number), dims };
    if (to === 9) return { data: Uint8Array.from(data, Boolean), dims };
    return { data: BigInt64Array.from(data, (x) => BigInt(Math.trunc(Number(x)))), dims };
  },
  Concat: (all, { axis }) => {
    const dims = all[0].dims.with(axis, sum(all.map((a) => a.dims.at(axis))));
    const data = new all[0].data.constructor(size(dims));
    const [outer] = around(all[0], axis);
    let to = 0;
    for (let i = 0; i < outer; i++) {
      for (const a of all) {
        const values = part(a.data, i, a.data.length / outer);
        data.set(values, to);
        to += values.length;
      }
    }
    return { data, dims };
  },
  Div: binary((x, y) => x / y),
  Equal: test((x, y) => x === y),
  Exp: unary(Math.exp),
  Expand: ([a, shape]) => spread(a, broadcast(a.dims, numbers(shape))),
  Flatten: ([{ data, dims }], { axis }) => {
    return { data, dims: [size(dims.slice(0, axis)), size(dims.slice(axis))] };
  },
  Gather: ([a, index], { axis = 0 }) => {
    const [outer, n, inner] = around(a, axis);
    const chosen = numbers(index).map((position) => (position < 0 ? position + n : position));
    const data = new (a.scales ? Float32Array : a.data.constructor)(outer * chosen.length * inner);
    for (let i = 0, to = 0; i < outer * chosen.length; i++) {
      const row = Math.floor(i / chosen.length) * n + chosen[i % chosen.length];
      const scale = a.scales?.[row];
      for (let j = row * inner; j < (row + 1) * inner; j++) {
        data[to++] = scale ? a.data[j] * scale : a.data[j];
      }
    }
    const dims = a.dims.toSpliced(axis, 1, ...index.dims);
    return { data: data instanceof Uint16Array ? BigInt64Array.from(data, BigInt) : data, dims };
  },
  GRU: layer(1, (fromInput, fromHidden, hidden) => {
    const n = hidden.length;
    for (let i = 0; i < n; i++) {
      const update = sigmoid(fromInput[i] + fromHidden[i]);
      const reset = sigmoid(fromInput[n + i] + fromHidden[n + i]);
      const candidate = Math.tanh(fromInput[2 * n + i] + reset * fromHidden[2 * n + i]);
      hidden[i] = (1 - update) * candidate + update * hidden[i];
    }
  }),
  Identity: ([a]) => a,
  LayerNormalization: ([a, weights, bias], { axis, epsilon }) => {
    const { Add, Div, Mul, ReduceMean, Sub } = OPERATORS;
    const centered = Sub([a, ReduceMean([a], { axes: [axis] })]);
    const variance = ReduceMean([Mul([centered, centered])], { axes: [axis] });
    const deviation = unary((x) => Math.sqrt(x + epsilon))([variance]);
    return Add([Mul([Div([centered, deviation]), weights]), bias]);
  },
  Less: test((x, y) => x < y),
  LessOrEqual: test((x, y) => x <= y),
  Linear: ([{ data, dims }, weights, bias], node) => {
    const matrix = (node.matrix ??= new Matrix(weights, bias?.data));
    const outputs = matrix.multiply(data, data.length / matrix.columns);
    return { data: outputs, dims: dims.with(-1, matrix.outputs) };
  },
  Log: unary(Math.log),
  LogSoftmax: ([{ data, dims }]) => {
    const result = data.slice();
    for (let row = 0; row < data.length / dims.at(-1); row++) {
      const values = part(result, row, dims.at(-1));
      let [largest, total] = [-Infinity, 0];
      for (let i = 0; i < values.length; i++) if (values[i] > largest) largest = values[i];
      for (let i = 0; i < values.length; i++) total += Math.exp(values[i] - largest);
      const norm = largest + Math.log(total);
      for (let i = 0; i < values.length; i++) values[i] -= norm;
    }
    return { data: result, dims };
  },
  LSTM: layer(2, (fromInput, fromHidden, hidden, cell) => {
    const n = hidden.length;
    const gate = (i) => fromInput[i] + fromHidden[i];
    for (let i = 0; i < n; i++) {
      const kept = sigmoid(gate(2 * n + i)) * cell[i];
      cell[i] = kept + sigmoid(gate(i)) * Math.tanh(gate(3 * n + i));
      hidden[i] = sigmoid(gate(n + i)) * Math.tanh(cell[i]);
    }
  }),
  // [B.., m, k] x [B.., k, n], of which none need be constant.
  MatMul: ([a, b]) => {
    const [[m, k], n] = [a.dims.slice(-2), b.dims.at(-1)];
    const batch = broadcast(a.dims.slice(0, -2), b.dims.slice(0, -2));
    const [x, y] = [spread(a, [...batch, m, k]).data, spread(b, [...batch, k, n]).data];
    const data = new Float32Array(size(batch) * m * n);
    for (let row = 0, to = 0; to < data.length; row++, to += n) {
      const matrix = part(y, Math.floor(row / m), k * n);
      for (let i = 0, from = 0; i < k; i++, from += n) {
        const factor = x[row * k + i];
        for (let j = 0; j < n; j++) data[to + j] += factor * matrix[from + j];
      }
    }
    return { data, dims: [...batch, m, n] };
  },
  Min: binary((x, y) => (x < y ? x : y)),
  Mod: binary((x, y) => ((x % y) + y) % y),
  Mul: binary((x, y) => x * y, fillProducts),
  Neg: unary((x) => -x),
  Not: unary((x) => (x ? 0 : 1)),
  Pow: binary((x, y) => x ** y),
  Range: ([start, end, step]) => {
    const values = [];
    for (let x = start.data[0]; x < end.data[0]; x += step.data[0]) values.push(x);
    return { data: start.data.constructor.from(values), dims: [values.length] };
  },
  ReduceMax: reduction((values) => values.reduce((x, y) => (x > y ? x : y))),
  ReduceMean: reduction((values) => sum(values) / values.length),
  ReduceSum: reduction(sum),
  Reshape: ([{ data, dims }, shape]) => {
    const wanted = numbers(shape).map((n, i) => n || dims[i]); // -1: what remains
    return { data, dims: wanted.map((n) => (n < 0 ? -data.length / size(wanted) : n)) };
  },
  RNN: layer(1, (fromInput, fromHidden, hidden) => {
    for (let i = 0; i < hidden.length; i++) hidden[i] = Math.tanh(fromInput[i] + fromHidden[i]);
  }),
  // Adds updates to the elements of the rows of `a` [.., n] that `index` [.., m] chooses.
  ScatterElements: ([{ data, dims }, index, updates]) => {
    const sums = data.slice();
    const [n, m] = [dims.at(-1), index.dims.at(-1)];
    numbers(index).forEach((to, i) => (sums[Math.floor(i / m) * n + to] += updates.data[i]));
    return { data: sums, dims };
  },
  Shape: ([{ dims }]) => ({ data: BigInt64Array.from(dims, BigInt), dims: [dims.length] }),
  Sigmoid: unary(sigmoid),
  Slice: ([a, starts, ends, axes]) => {
    return (axes ? numbers(axes) : [...starts.data.keys()]).reduce((tensor, axis, i) => {
      const n = tensor.dims[axis];
      const place = ({ data }) => Math.max(0, Math.min(n, Number(data[i]) + (data[i] < 0 ? n : 0)));
      return slice(tensor, axis, place(starts), place(ends));
    }, a);
  },
  Softmax: (inputs, attributes) => OPERATORS.Exp([OPERATORS.LogSoftmax(inputs, attributes)]),
  Split: ([a, lengths], { axis }) => {
    let end = 0;
    return numbers(lengths).map((length) => slice(a, axis, end, (end += length)));
  },
  Squeeze: ([{ data, dims }, axis]) => ({ data, dims: dims.toSpliced(Number(axis.data[0]), 1) }),
  Sub: binary((x, y) => x - y, fillDifferences),
  Tanh: unary(Math.tanh),
  Tile: ([a, repeats]) => {
    const repeat = (tensor, n, axis) => OPERATORS.Concat(Array(n).fill(tensor), { axis });
    return numbers(repeats).reduce(repeat, a);
  },
  TopK: ([a, k]) => {
    const [length, n] = around(a, -1);
    const dims = a.dims.with(-1, Number(k.data[0]));
    const rows = Array.from({ length }, (_, i) => part(a.data, i, n));
    const ids = rows.map((row) => best(row, dims.at(-1)));
    const values = rows.flatMap((row, i) => ids[i].map((id) => row[id]));
    return [
      { data: Float32Array.from(values), dims },
      { data: BigInt64Array.from(ids.flat(), BigInt), dims },
    ];
  },
  Transpose: ([a], { perm }) => {
    const [dims, steps] = [a.dims, stepsOf(a)].map((list) => perm.map((axis) => list[axis]));
    return strided(a.data, dims, steps);
  },
  Unsqueeze: ([{ data, dims }, axis]) => {
    const [place] = numbers(axis);
    return { data, dims: dims.toSpliced(place < 0 ? place + dims.length + 1 : place, 0, 1) };
  },
  Where: (tensors) => {
    const [dims, isFirst, first, second] = aligned(tensors);
    return { data: first.map((value, i) => (isFirst[i] ? value : second[i])), dims };
  },
};

const ARRAY_TYPES = {
  float32: Float32Array,
  int64: BigInt64Array,
  bool: Uint8Array,
  uint16: Uint16Array,
  int8: Int8Array,
};

// The tensors whose places in `weights` (ArrayBuffer) store.py has written, by name.
function tensorsOf(places, weights) {
  const read = ([name, { type, dims, at, scales }]) => {
    const tensor = { data: new ARRAY_TYPES[type](weights, at, size(dims)), dims };
    if (scales !== undefined) {
      tensor.scales = new Float32Array(weights, scales, size(dims.slice(0, -1)));
    }
    return [name, tensor];
  };
  return Object.fromEntries(Object.entries(places).map(read));
}

// A graph that program.py has written.
class Graph {
  constructor({ outputs, tensors, nodes }, weights) {
    Object.assign(this, { outputs, nodes, constants: tensorsOf(tensors, weights) });
  }

  // {name: tensor} of the inputs -> {name: tensor} of the outputs
  run(given) {
    const values = { ...this.constants, ...given };
    for (const [operator, inputs, outputs, attributes] of this.nodes) {
      const tensors = inputs.map((name) => values[name]);
      const results = [OPERATORS[operator](tensors, attributes)].flat();
      outputs.forEach((name, i) => (values[name] = results[i]));
    }
    return Object.fromEntries(this.outputs.map((name) => [name, values[name]]));
  }
}
