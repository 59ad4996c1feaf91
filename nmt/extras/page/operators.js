// Runs the graphs of a translator: operators of ONNX.

// A tensor is {data, dims}. data: Float32Array or Int32Array; Uint8Array for constant bools. Only
// constants that Gather and Matrix read have others, and perhaps scales.
const size = (dims) => dims.reduce((product, n) => product * n, 1);
const sum = (values) => values.reduce((total, value) => total + value, 0);
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
  let to = 0;
  const copy = (from, axis) => {
    const [n, step, isLast] = [dims[axis], steps[axis], axis === dims.length - 1];
    if (isLast) for (let i = 0; i < n; i++) result[to++] = data[from + i * step];
    else for (let i = 0; i < n; i++) copy(from + i * step, axis + 1);
  };
  copy(first, 0);
  return { data: result, dims };
}

// n elements along an axis.
function slice(tensor, axis, start, n) {
  const steps = stepsOf(tensor);
  return strided(tensor.data, tensor.dims.with(axis, n), steps, start * steps.at(axis));
}

function broadcast(one, other) {
  const n = Math.max(one.length, other.length);
  const sizeOf = (_, i) => Math.max(one.at(i - n) ?? 1, other.at(i - n) ?? 1);
  return Array.from({ length: n }, sizeOf);
}

// A tensor that is repeated along axes where it has size 1.
function spread(tensor, dims) {
  const { data, dims: own } = tensor;
  if (data.length === size(dims)) return { data, dims };
  const steps = stepsOf(tensor).map((step, axis) => (own[axis] === 1 ? 0 : step));
  return strided(data, dims, [...Array(dims.length - own.length).fill(0), ...steps]);
}

// compute: elements of up to three tensors, repeated to the same dimensions -> an element.
const elementwise = (compute) => (tensors) => {
  const dims = tensors.map((tensor) => tensor.dims).reduce(broadcast);
  const [x, y, z] = tensors.map((tensor) => spread(tensor, dims).data);
  const data = new (z ?? x).constructor(x.length);
  for (let i = 0; i < data.length; i++) data[i] = compute(x[i], y?.[i], z?.[i]);
  return { data, dims };
};

// compute: the values along an axis -> a value.
const reduction =
  (compute) =>
  ([a, chosen], { axes = chosen?.data, keepdims = 1 }) => {
    const [outer, n, inner] = around(a, axes[0]);
    const values = strided(a.data, [outer, inner, n], [n * inner, 1, inner]).data;
    const data = a.data.slice(0, outer * inner).map((_, i) => compute(part(values, i, n)));
    return { data, dims: a.dims.toSpliced(axes[0], 1, ...(keepdims ? [1] : [])) };
  };

// change: changes a row along the last axis.
const byRow = (change) => (inputs, attributes) => {
  const [{ data, dims }, ...others] = inputs;
  const result = data.slice();
  for (let i = 0; i < data.length / dims.at(-1); i++) {
    change(part(result, i, dims.at(-1)), others, attributes);
  }
  return { data: result, dims };
};

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
// do what nmt/model/graphs.py needs: Cast to bool of bools; Range from 0; Squeeze, Unsqueeze and
// reductions of one axis; LogSoftmax, Softmax, LayerNormalization and ScatterElements (which adds)
// along the last axis; Slice and Range with steps of 1. program.py reads the names in this table.
const OPERATORS = {
  Abs: elementwise(Math.abs),
  Add: elementwise((x, y) => x + y),
  And: elementwise((x, y) => x && y),
  Cast: ([{ data, dims }], { to }) => {
    return { data: (to === 1 ? Float32Array : Int32Array).from(data), dims };
  },
  Concat: (all, { axis }) => {
    const dims = all[0].dims.with(axis, sum(all.map((a) => a.dims.at(axis))));
    const data = new all[0].data.constructor(size(dims));
    const [outer] = around(all[0], axis);
    for (let i = 0, to = 0; to < data.length; i++) {
      for (const a of all) {
        const values = part(a.data, i, a.data.length / outer);
        data.set(values, to);
        to += values.length;
      }
    }
    return { data, dims };
  },
  Div: elementwise((x, y) => x / y),
  Equal: elementwise((x, y) => x === y),
  Exp: elementwise(Math.exp),
  Expand: ([a, { data }]) => spread(a, broadcast(a.dims, [...data])),
  Flatten: ([{ data, dims }], { axis }) => {
    return { data, dims: [size(dims.slice(0, axis)), size(dims.slice(axis))] };
  },
  Gather: ([a, index], { axis = 0 }) => {
    const [outer, n, inner] = around(a, axis);
    const dims = a.dims.toSpliced(axis, 1, ...index.dims);
    const data = new (a.scales ? Float32Array : a.data.constructor)(size(dims));
    for (let i = 0, to = 0; i < outer; i++) {
      for (const place of index.data) {
        const row = i * n + (place < 0 ? place + n : place);
        const scale = a.scales?.[row] ?? 1;
        for (const value of part(a.data, row, inner)) data[to++] = value * scale;
      }
    }
    return { data, dims };
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
  LayerNormalization: byRow((row, [weights, bias], { epsilon }) => {
    const mean = sum(row) / row.length;
    const variance = sum(row.map((x) => (x - mean) ** 2)) / row.length;
    const normal = row.map((x) => (x - mean) / Math.sqrt(variance + epsilon));
    row.set(normal.map((x, i) => x * weights.data[i] + bias.data[i]));
  }),
  Less: elementwise((x, y) => x < y),
  LessOrEqual: elementwise((x, y) => x <= y),
  Linear: ([{ data, dims }, weights, bias], node) => {
    const matrix = (node.matrix ??= new Matrix(weights, bias?.data));
    const outputs = matrix.multiply(data, data.length / matrix.columns);
    return { data: outputs, dims: dims.with(-1, matrix.outputs) };
  },
  Log: elementwise(Math.log),
  LogSoftmax: byRow((row) => {
    let [largest, total] = [-Infinity, 0];
    for (let i = 0; i < row.length; i++) if (row[i] > largest) largest = row[i];
    for (let i = 0; i < row.length; i++) total += Math.exp(row[i] - largest);
    const norm = largest + Math.log(total);
    for (let i = 0; i < row.length; i++) row[i] -= norm;
  }),
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
  Min: elementwise((x, y) => (x < y ? x : y)),
  Mod: elementwise((x, y) => ((x % y) + y) % y),
  Mul: elementwise((x, y) => x * y),
  Neg: elementwise((x) => -x),
  Not: elementwise((x) => !x),
  Pow: elementwise((x, y) => x ** y),
  Range: ([, end]) => {
    const [n] = end.data;
    return { data: Int32Array.from(Array(n).keys()), dims: [n] };
  },
  ReduceMax: reduction((values) => values.reduce((x, y) => (x > y ? x : y))),
  ReduceMean: reduction((values) => sum(values) / values.length),
  ReduceSum: reduction(sum),
  Reshape: ([{ data, dims }, shape]) => {
    const wanted = Array.from(shape.data, (n, i) => n || dims[i]); // -1: what remains
    return { data, dims: wanted.map((n) => (n < 0 ? -data.length / size(wanted) : n)) };
  },
  RNN: layer(1, (fromInput, fromHidden, hidden) => {
    for (let i = 0; i < hidden.length; i++) hidden[i] = Math.tanh(fromInput[i] + fromHidden[i]);
  }),
  ScatterElements: ([{ data, dims }, index, updates]) => {
    const sums = data.slice();
    const [n, m] = [dims.at(-1), index.dims.at(-1)];
    index.data.forEach((place, i) => (sums[Math.floor(i / m) * n + place] += updates.data[i]));
    return { data: sums, dims };
  },
  Shape: ([{ dims }]) => ({ data: Int32Array.from(dims), dims: [dims.length] }),
  Sigmoid: elementwise(sigmoid),
  Slice: ([a, starts, ends, axes]) => {
    return starts.data.reduce((tensor, start, i) => {
      const axis = axes?.data[i] ?? i;
      const places = [...Array(tensor.dims.at(axis)).keys()].slice(start, ends.data[i]);
      return slice(tensor, axis, places[0] ?? 0, places.length);
    }, a);
  },
  Softmax: (inputs) => OPERATORS.Exp([OPERATORS.LogSoftmax(inputs)]),
  Split: ([a, lengths], { axis }) => {
    const starts = lengths.data.map((_, i) => sum(lengths.data.slice(0, i)));
    return Array.from(lengths.data, (n, i) => slice(a, axis, starts[i], n));
  },
  Squeeze: ([{ data, dims }, axis]) => ({ data, dims: dims.toSpliced(axis.data[0], 1) }),
  Sub: elementwise((x, y) => x - y),
  Tanh: elementwise(Math.tanh),
  Tile: ([a, repeats]) => {
    const repeat = (tensor, n, axis) => OPERATORS.Concat(Array(n).fill(tensor), { axis });
    return repeats.data.reduce(repeat, a);
  },
  Transpose: ([a], { perm }) => {
    const [dims, steps] = [a.dims, stepsOf(a)].map((list) => perm.map((axis) => list[axis]));
    return strided(a.data, dims, steps);
  },
  Unsqueeze: ([{ data, dims }, axes]) => {
    const [axis] = axes.data;
    return { data, dims: dims.toSpliced(axis < 0 ? axis + dims.length + 1 : axis, 0, 1) };
  },
  Where: elementwise((isFirst, first, second) => (isFirst ? first : second)),
};

// The tensors whose places in `weights` (ArrayBuffer) store.py has written, by name.
function tensorsOf(places, weights) {
  const read = ([name, { type, dims, at, scales }]) => {
    const tensor = { data: new globalThis[type](weights, at, size(dims)), dims };
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
