// Runs the graphs of a translator: operators of ONNX.

// A tensor is {data, dims}. data: Float32Array, also of integers and bools. Only constants that
// Gather and Matrix read may have others, with scales.
const size = (dims) => dims.reduce((product, n) => product * n, 1);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const asTensor = (values, dims) => ({ data: Float32Array.from(values), dims });

// How far the elements lie apart along each axis.
const stepsOf = ({ dims }) => dims.map((_, axis) => size(dims.slice(axis + 1)));

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
  const data = new Float32Array(x.length);
  for (let i = 0; i < data.length; i++) data[i] = compute(x[i], y?.[i], z?.[i]);
  return { data, dims };
};

// compute: the values along an axis -> a value.
const reduction =
  (compute) =>
  ([a, chosen], { axes: [axis] = chosen.data, keepdims }) => {
    const [n, step] = [a.dims.at(axis), stepsOf(a).at(axis)];
    const outer = a.data.length / n / step;
    const values = strided(a.data, [outer, step, n], [n * step, 1, step]).data;
    const data = a.data.slice(0, outer * step).map((_, i) => compute(part(values, i, n)));
    return { data, dims: a.dims.toSpliced(axis, 1, ...(keepdims ? [1] : [])) };
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

// A layer of a cell over x [S, 1, I], forward or in both directions: its outputs and last states,
// [S, directions, 1, H] and [directions, 1, H]. `advance` changes the states [H]; it is given the
// parts of the gates from input and hidden state.
function layer(nStates, advance) {
  return ([x, weights, recurrent, { data: bias }], node) => {
    const [nSteps] = x.dims;
    const [directions, nGates, hidden] = recurrent.dims;
    node.matrices ??= Array.from({ length: directions }, (_, i) => [
      new Matrix(weights, part(bias, 2 * i, nGates), i),
      new Matrix(recurrent, part(bias, 2 * i + 1, nGates), i),
    ]);
    const n = directions * hidden;
    const outputs = new Float32Array(nSteps * n);
    const states = Array.from({ length: nStates }, () => new Float32Array(n));
    node.matrices.forEach(([ofInput, ofHidden], direction) => {
      const own = states.map((state) => part(state, direction, hidden));
      const fromInput = ofInput.multiply(x.data, nSteps);
      for (let step = 0; step < nSteps; step++) {
        const time = direction ? nSteps - 1 - step : step;
        advance(part(fromInput, time, nGates), ofHidden.multiply(own[0], 1), ...own);
        outputs.set(own[0], (time * directions + direction) * hidden);
      }
    });
    const dims = [directions, 1, hidden];
    return [{ data: outputs, dims: [nSteps, ...dims] }, ...states.map((data) => ({ data, dims }))];
  };
}

// As in ONNX: (inputs, attributes) -> output, or outputs; and `Linear`, for constant weights. They
// do what nmt/model/graphs.py needs: Cast keeps the numbers; Range from 0; Reshape without 0;
// Squeeze, Unsqueeze and reductions of one axis; Gather along the first one; LogSoftmax, Softmax,
// LayerNormalization and ScatterElements (which adds) along the last one; Slice along one, between
// places from the start, while a second one stays whole; Slice and Range with steps of 1; Split
// into equal parts. program.py reads the names in this table.
const OPERATORS = {
  Abs: elementwise(Math.abs),
  Add: elementwise((x, y) => x + y),
  And: elementwise((x, y) => x && y),
  Cast: ([a]) => a,
  Concat: (all, { axis }) => {
    const dims = all[0].dims.with(axis, sum(all.map((a) => a.dims.at(axis))));
    const data = new Float32Array(size(dims));
    const outer = size(dims.slice(0, axis));
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
  Gather: ([a, index]) => {
    const dims = [...index.dims, ...a.dims.slice(1)];
    const data = new Float32Array(size(dims));
    const length = a.data.length / a.dims[0];
    let to = 0;
    for (const row of index.data) {
      const scale = a.scales?.[row] ?? 1;
      for (const value of part(a.data, row, length)) data[to++] = value * scale;
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
  Range: ([, { data }]) => asTensor(Array(data[0]).keys(), [data[0]]),
  ReduceMax: reduction((values) => values.reduce((x, y) => (x > y ? x : y))),
  ReduceMean: reduction((values) => sum(values) / values.length),
  ReduceSum: reduction(sum),
  Reshape: ([{ data }, shape]) => {
    const rest = -data.length / size(shape.data); // in place of -1
    return { data, dims: Array.from(shape.data, (n) => (n < 0 ? rest : n)) };
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
  Shape: ([{ dims }]) => asTensor(dims, [dims.length]),
  Sigmoid: elementwise(sigmoid),
  Slice: ([a, starts, ends, axes]) => {
    const [[start], axis] = [starts.data, axes?.data[0] ?? 0];
    return slice(a, axis, start, Math.min(ends.data[0], a.dims[axis]) - start);
  },
  Softmax: (inputs) => OPERATORS.Exp([OPERATORS.LogSoftmax(inputs)]),
  Split: ([a, lengths], { axis }) => Array.from(lengths.data, (n, i) => slice(a, axis, i * n, n)),
  Squeeze: ([{ data, dims }, axis]) => ({ data, dims: dims.toSpliced(axis.data[0], 1) }),
  Sub: elementwise((x, y) => x - y),
  Tanh: elementwise(Math.tanh),
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
  const read = ({ type, dims, at, scales }) => {
    const data = new globalThis[type](weights, at, size(dims));
    return { data, dims, scales: scales && read(scales).data };
  };
  return Object.fromEntries(Object.entries(places).map(([name, place]) => [name, read(place)]));
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
