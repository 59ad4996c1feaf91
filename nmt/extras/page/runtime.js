// Runs the graphs of a translator: operators of ONNX in JavaScript, and products with weights in WebAssembly (kernel.wat).
const KERNEL =
  "AGFzbQEAAAABFQJgBHt7e3sBe2AJf39/f39/f39/AAMDAgABBQMBAAEHFQIGbWVtb3J5AgAIbXVsdGlwbHkAAQqBBQKTAQAgACAB/Q0AAQIDEBESEwQFBgcUFRYXIAAgAf0NCAkKCxgZGhs" +
  "MDQ4PHB0eH/3kASEAIAIgA/0NAAECAxAREhMEBQYHFBUWFyACIAP9DQgJCgsYGRobDA0ODxwdHh/95AEhAiAAIAL9DQABAgMEBQYHEBESExQVFhcgACAC/Q0ICQoLDA0ODxgZGhscHR4f/e" +
  "QBC+kDAgZ/B3sDQEEAIQ0gACEKIAUhDCACIAhBAnRqIQ4DQCACIQv9DAAAAAAAAAAAAAAAAAAAAAAiFSIUIhMhEiADBEADQCAK/QAEACEQIAr9AAQQIREgEiAQIAv9AQMA/boBIBEgC/0BA" +
  "wj9ugH9rgH9rgEhEiATIBAgC/0BAxD9ugEgESAL/QEDGP26Af2uAf2uASETIBQgECAL/QEDIP26ASARIAv9AQMo/boB/a4B/a4BIRQgFSAQIAv9AQMw/boBIBEgC/0BAzj9ugH9rgH9rgEh" +
  "FSAKQSBqIQogC0HAAGoiCyAOSQ0ACyAS/foBIBP9+gEgFP36ASAV/foBEAAhDyABIA1BAnRq/QkCACEQIA8gECAD/QAEAP3mAf3mASEPBQNAIAr9AAQAIRAgEiAQIAv9AAQA/eYB/eQBIRI" +
  "gEyAQIAv9AAQQ/eYB/eQBIRMgFCAQIAv9AAQg/eYB/eQBIRQgFSAQIAv9AAQw/eYB/eQBIRUgCkEQaiEKIAtBwABqIgsgDkkNAAsgEiATIBQgFRAAIQ8LIAwgDyAE/QAEAP3kAf0LBAAgDC" +
  "AHQQJ0aiEMIA1BAWoiDSAGSQ0ACyAOIQIgBUEQaiEFIARBEGohBCADBEAgA0EQaiEDCyAJQQRqIgkgB0kNAAsL";
let kernel; // what kernel.wat exports
let heapEnd = 16; // of its memory, as far as weights fill it; what lies behind is free for a product

// Must have ended before the first Graph is made.
async function startKernel() {
  const bytes = Uint8Array.from(atob(KERNEL), (character) => character.charCodeAt(0));
  kernel ??= (await WebAssembly.instantiate(bytes)).instance.exports;
}

// A part of the memory of the kernel. If the memory has to grow for it, earlier views are of no use any more.
function view(ArrayType, at, length) {
  const missing = at + length * ArrayType.BYTES_PER_ELEMENT - kernel.memory.buffer.byteLength;
  if (missing > 0) kernel.memory.grow(Math.ceil(missing / 65536));
  return new ArrayType(kernel.memory.buffer, at, length);
}

// Keeps a copy in the memory of the kernel; returns its address.
function store(values) {
  const at = heapEnd;
  view(values.constructor, at, values.length).set(values);
  heapEnd = roundUp(at + values.byteLength, 16);
  return at;
}

// data: Float32Array, BigInt64Array (int64) or Uint8Array (bool); only constants have others, which Gather and Matrix read.
class Tensor {
  constructor(data, dims) {
    this.data = data;
    this.dims = dims;
  }
}

// A matrix of weights with its bias, in the memory of the kernel, in the order in which it reads them.
class Matrix {
  // Takes the matrix at `index` of weights [.., outputs, columns], float32 or int8 with scales; bias [outputs], or none.
  constructor({ data, dims, scales }, bias, index = 0) {
    const [outputs, columns] = dims.slice(-2);
    const step = 16 / data.BYTES_PER_ELEMENT;
    const [rows, width] = [roundUp(outputs, 4), roundUp(columns, step)]; // zeros fill the last ones
    const ordered = new data.constructor(rows * width);
    for (let row = 0, from = index * outputs * columns; row < outputs; row++) {
      const first = (row >> 2) * 4 * width + (row & 3) * step;
      for (let i = 0; i < columns; i++) ordered[first + 4 * (i & -step) + (i & (step - 1))] = data[from++];
    }
    const padded = (values) => Float32Array.from({ length: rows }, (_, i) => values?.[i] ?? 0);
    Object.assign(this, { outputs, columns, rows, width, rowBytes: width * data.BYTES_PER_ELEMENT });
    this.at = store(ordered);
    this.bias = store(padded(bias));
    this.scales = scales ? store(padded(part(scales, index, outputs))) : 0;
  }

  // x [n, columns] -> [n, outputs]
  multiply(x, n) {
    const { outputs, columns, rows, width, scales } = this;
    const scalesAt = heapEnd + 4 * n * width;
    const outputAt = roundUp(scalesAt + 4 * n, 16);
    const output = view(Float32Array, outputAt, n * rows); // the last one first: it may make the memory grow
    const input = view(scales ? Int16Array : Float32Array, heapEnd, n * width).fill(0);
    const inputScales = view(Float32Array, scalesAt, n);
    for (let i = 0; i < n; i++) {
      const row = part(x, i, columns);
      if (scales) inputScales[i] = toIntegers(row, input.subarray(i * width));
      else input.set(row, i * width);
    }
    kernel.multiply(heapEnd, scalesAt, this.at, scales, this.bias, outputAt, n, rows, this.rowBytes);
    return rows === outputs ? output.slice() : strided(output, [n, outputs], [rows, 1]).data;
  }
}

// Values as integers of 15 bits, far finer than the weights, times a scale, which it returns; of fewer, if sums would not fit int32.
function toIntegers(values, target) {
  let largest = 1e-30;
  for (let i = 0; i < values.length; i++) largest = Math.max(largest, Math.abs(values[i]));
  const scale = largest / Math.min(32767, Math.floor(2 ** 26 / values.length));
  for (let i = 0; i < values.length; i++) target[i] = Math.round(values[i] / scale);
  return scale;
}

const size = (dims) => dims.reduce((product, n) => product * n, 1);
const roundUp = (n, step) => Math.ceil(n / step) * step;
const numbers = (tensor) => Array.from(tensor.data, Number);
const part = (values, i, length) => values.subarray(i * length, (i + 1) * length);
const sum = (values) => values.reduce((total, value) => total + value);
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// A tensor as three axes [outer, n, inner], of which the middle one is `axis`; and `axis`, counted from the first.
function around({ dims }, axis) {
  if (axis < 0) axis += dims.length;
  return [size(dims.slice(0, axis)), dims[axis], size(dims.slice(axis + 1)), axis];
}
const stepsOf = (tensor) => tensor.dims.map((_, axis) => around(tensor, axis)[2]);

// A tensor of these dimensions, of the elements that lie `steps` apart along its axes.
function strided(data, dims, steps, first = 0) {
  const result = new data.constructor(size(dims));
  const last = dims.length - (steps.at(-1) === 1 ? 1 : 0); // neighbours stay together
  const block = size(dims.slice(last));
  let to = 0;
  const copy = (from, axis) => {
    if (axis < last) for (let i = 0; i < dims[axis]; i++) copy(from + i * steps[axis], axis + 1);
    else if (block === 1) result[to++] = data[from];
    else {
      result.set(data.subarray(from, from + block), to);
      to += block;
    }
  };
  copy(first, 0);
  return new Tensor(result, dims);
}

function broadcast(dims, others) {
  if (dims.length < others.length) return broadcast(others, dims);
  return dims.map((n, i) => (n === 1 ? (others[others.length - dims.length + i] ?? 1) : n));
}

// A tensor that is repeated along axes where it has size 1.
function spread(a, dims) {
  if (a.data.length === size(dims)) return new Tensor(a.data, dims);
  if (a.data.length === 1) return new Tensor(new a.data.constructor(size(dims)).fill(a.data[0]), dims);
  const own = new Tensor(a.data, [...Array(dims.length - a.dims.length).fill(1), ...a.dims]);
  return strided(a.data, dims, stepsOf(own).map((step, axis) => (own.dims[axis] === 1 ? 0 : step)));
}

// Tensors that are repeated to the same dimensions: these, and the data of each.
function aligned(tensors) {
  const dims = tensors.reduce((all, tensor) => broadcast(all, tensor.dims), []);
  return [dims, ...tensors.map((tensor) => spread(tensor, dims).data)];
}

const unary = (compute) => ([{ data, dims }]) => new Tensor(data.map(compute), dims);

// fill: as `compute`, for whole arrays of float32: a loop of its own is ten times as fast as calls from a shared one.
function binary(compute, fill, ResultType) {
  return (tensors) => {
    const [dims, x, y] = aligned(tensors);
    const result = new (ResultType ?? x.constructor)(x.length);
    if (fill && x instanceof Float32Array) fill(x, y, result);
    else for (let i = 0; i < result.length; i++) result[i] = compute(x[i], y[i]);
    return new Tensor(result, dims);
  };
}
const test = (compare) => binary((x, y) => (compare(x, y) ? 1 : 0), null, Uint8Array);

// compute: the values along an axis -> a value. Without axis, of all.
function reduction(compute) {
  return ([a, chosen], { axes, keepdims = 1 }) => {
    const [axis, another] = chosen ? numbers(chosen) : (axes ?? []);
    if (another !== undefined) throw new Error("a reduction has one axis, or all");
    if (axis === undefined) return new Tensor(a.data.constructor.of(compute(a.data)), keepdims ? a.dims.map(() => 1) : []);
    const [outer, n, inner, place] = around(a, axis);
    const values = strided(a.data, [outer, inner, n], [n * inner, 1, inner]).data;
    const result = a.data.constructor.from({ length: outer * inner }, (_, i) => compute(part(values, i, n)));
    return new Tensor(result, keepdims ? a.dims.with(place, 1) : a.dims.toSpliced(place, 1));
  };
}

// The positions of the k largest (or smallest) values, in order; of equal ones, the first.
function best(values, k, isLargest) {
  const chosen = [];
  const isBefore = isLargest ? (i, j) => values[i] > values[j] : (i, j) => values[i] < values[j];
  for (let i = 0; i < values.length; i++) {
    if (chosen.length === k && !isBefore(i, chosen[k - 1])) continue;
    let place = Math.min(chosen.length, k - 1);
    for (; place > 0 && isBefore(i, chosen[place - 1]); place--) chosen[place] = chosen[place - 1];
    chosen[place] = i;
  }
  return chosen;
}

// Positions in `data` [outer, n, inner] of the elements of `index` [outer, m, inner], which counts along `axis`.
function positions(data, index, axis) {
  const [[outer, n, inner], [outerIndex, m, innerIndex]] = [around(data, axis), around(index, axis)];
  if (outer !== outerIndex || inner !== innerIndex) throw new Error(`an index of [${index.dims}] for [${data.dims}]`);
  return numbers(index).map((position, i) => (Math.floor(i / (m * inner)) * n + position) * inner + (i % inner));
}

// A layer of a cell over x [S, B, I], forward or in both directions: its outputs [S, directions, B, H], and the last states
// [directions, B, H]. `advance` changes the states [H] of a row; it is given the parts of the gates from input and hidden state.
function layer(nStates, advance) {
  return ([x, weights, recurrent, { data: bias }, lengths], node) => {
    const [[nSteps, nRows], [directions, nGates], hidden] = [x.dims, weights.dims, recurrent.dims[2]];
    const toMatrix = (tensor, i, direction) => new Matrix(tensor, part(bias, 2 * direction + i, nGates), direction);
    node.matrices ??= Array.from({ length: directions }, (_, i) => [toMatrix(weights, 0, i), toMatrix(recurrent, 1, i)]);
    const outputs = new Float32Array(nSteps * directions * nRows * hidden);
    const states = Array.from({ length: nStates }, () => new Float32Array(directions * nRows * hidden));
    for (let direction = 0; direction < directions; direction++) {
      const fromInput = node.matrices[direction][0].multiply(x.data, nSteps * nRows);
      for (let step = 0; step < nSteps; step++) {
        const time = direction ? nSteps - 1 - step : step;
        const fromHidden = node.matrices[direction][1].multiply(part(states[0], direction, nRows * hidden), nRows);
        for (let row = 0; row < nRows; row++) {
          if (time >= lengths.data[row]) continue;
          const own = states.map((state) => part(state, direction * nRows + row, hidden));
          advance(part(fromInput, time * nRows + row, nGates), part(fromHidden, row, nGates), ...own);
          outputs.set(own[0], ((time * directions + direction) * nRows + row) * hidden);
        }
      }
    }
    const dims = [directions, nRows, hidden];
    return [new Tensor(outputs, [nSteps, ...dims]), ...states.map((state) => new Tensor(state, dims))];
  };
}

// As in ONNX: (inputs, attributes) -> output, or outputs; and `Linear`, for constant weights. program.py reads the names in this table.
const OPERATORS = {
  Abs: unary((x) => (x < 0 ? -x : x)),
  Add: binary((x, y) => x + y, (x, y, result) => { for (let i = 0; i < x.length; i++) result[i] = x[i] + y[i]; }),
  And: test((x, y) => x && y),
  Cast: ([a], { to }) => {
    if (to === 1) return new Tensor(Float32Array.from(a.data, Number), a.dims);
    if (to === 9) return new Tensor(Uint8Array.from(a.data, (x) => (Number(x) ? 1 : 0)), a.dims);
    return a.data instanceof BigInt64Array ? a : new Tensor(BigInt64Array.from(a.data, (x) => BigInt(Math.trunc(x))), a.dims);
  },
  Clip: ([a, low, high]) => OPERATORS.Min([low ? binary((x, y) => (x > y ? x : y))([a, low]) : a, high ?? a]),
  Concat: (all, { axis }) => {
    const [outer, , , middle] = around(all[0], axis);
    const parts = Array.from({ length: outer }, (_, i) => all.map(({ data }) => part(data, i, data.length / outer))).flat();
    const result = new all[0].data.constructor(sum(parts.map((values) => values.length)));
    parts.reduce((to, values) => (result.set(values, to), to + values.length), 0);
    return new Tensor(result, all[0].dims.with(middle, sum(all.map((a) => a.dims[middle]))));
  },
  CumSum: ([a, axis]) => {
    const [[, n, inner], result] = [around(a, Number(axis.data[0])), a.data.slice()];
    for (let i = 0; i < result.length; i++) if (Math.floor(i / inner) % n) result[i] += result[i - inner];
    return new Tensor(result, a.dims);
  },
  Div: binary((x, y) => x / y),
  Equal: test((x, y) => x === y),
  Exp: unary(Math.exp),
  Expand: ([a, shape]) => spread(a, broadcast(a.dims, numbers(shape))),
  Flatten: ([a], { axis }) => new Tensor(a.data, [size(a.dims.slice(0, axis)), size(a.dims.slice(axis))]),
  Gather: ([a, index], { axis = 0 }) => {
    const [outer, n, inner, middle] = around(a, axis);
    const result = new (a.scales ? Float32Array : a.data.constructor)(outer * index.data.length * inner);
    const chosen = numbers(index).map((position) => (position < 0 ? position + n : position));
    for (let i = 0, to = 0; i < outer * chosen.length; i++) {
      const row = Math.floor(i / chosen.length) * n + chosen[i % chosen.length];
      const scale = a.scales?.[row];
      for (let j = row * inner; j < (row + 1) * inner; j++) result[to++] = scale ? a.data[j] * scale : a.data[j];
    }
    const dims = a.dims.toSpliced(middle, 1, ...index.dims);
    return new Tensor(result instanceof Uint16Array ? BigInt64Array.from(result, BigInt) : result, dims);
  },
  GatherElements: ([a, index], { axis = 0 }) => new Tensor(a.data.constructor.from(positions(a, index, axis), (i) => a.data[i]), index.dims),
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
    return Add([Mul([Div([centered, unary((x) => Math.sqrt(x + epsilon))([variance])]), weights]), bias]);
  },
  Less: test((x, y) => x < y),
  LessOrEqual: test((x, y) => x <= y),
  Linear: ([a, weights, bias], node) => {
    const matrix = (node.matrix ??= new Matrix(weights, bias?.data));
    return new Tensor(matrix.multiply(a.data, a.data.length / matrix.columns), a.dims.with(-1, matrix.outputs));
  },
  Log: unary(Math.log),
  LogSoftmax: ([a], { axis }) => OPERATORS.Sub([a, OPERATORS.ReduceLogSumExp([a], { axes: [axis] })]),
  LSTM: layer(2, (fromInput, fromHidden, hidden, cell) => {
    const n = hidden.length;
    const gate = (i) => fromInput[i] + fromHidden[i];
    for (let i = 0; i < n; i++) {
      cell[i] = sigmoid(gate(2 * n + i)) * cell[i] + sigmoid(gate(i)) * Math.tanh(gate(3 * n + i));
      hidden[i] = sigmoid(gate(n + i)) * Math.tanh(cell[i]);
    }
  }),
  // [B.., m, k] x [B.., k, n], of which none need be constant.
  MatMul: ([a, b]) => {
    const [[m, k], n] = [a.dims.slice(-2), b.dims.at(-1)];
    const batch = broadcast(a.dims.slice(0, -2), b.dims.slice(0, -2));
    const [x, y] = [spread(a, [...batch, m, k]).data, spread(b, [...batch, k, n]).data];
    const result = new Float32Array(size(batch) * m * n);
    for (let row = 0, to = 0; to < result.length; row++, to += n) {
      const matrix = part(y, Math.floor(row / m), k * n);
      for (let i = 0, from = 0; i < k; i++, from += n) {
        const factor = x[row * k + i];
        for (let j = 0; j < n; j++) result[to + j] += factor * matrix[from + j];
      }
    }
    return new Tensor(result, [...batch, m, n]);
  },
  Min: (all) => all.reduce((a, b) => binary((x, y) => (x < y ? x : y))([a, b])),
  Mod: binary((x, y) => ((x % y) + y) % y),
  Mul: binary((x, y) => x * y, (x, y, result) => { for (let i = 0; i < x.length; i++) result[i] = x[i] * y[i]; }),
  Neg: unary((x) => -x),
  Not: unary((x) => (x ? 0 : 1)),
  Or: test((x, y) => x || y),
  Pow: binary((x, y) => x ** y),
  Range: ([start, end, step]) => {
    const values = [];
    for (let x = start.data[0]; x < end.data[0]; x += step.data[0]) values.push(x);
    return new Tensor(start.data.constructor.from(values), [values.length]);
  },
  ReduceLogSumExp: reduction((values) => {
    let [largest, total] = [-Infinity, 0];
    for (let i = 0; i < values.length; i++) if (values[i] > largest) largest = values[i];
    for (let i = 0; i < values.length; i++) total += Math.exp(values[i] - largest);
    return largest + Math.log(total);
  }),
  ReduceMax: reduction((values) => values.reduce((x, y) => (x > y ? x : y))),
  ReduceMean: reduction((values) => sum(values) / values.length),
  ReduceSum: reduction(sum),
  Reshape: ([a, shape]) => {
    const dims = numbers(shape).map((n, i) => n || a.dims[i]);
    return new Tensor(a.data, dims.map((n) => (n < 0 ? -a.data.length / size(dims) : n)));
  },
  RNN: layer(1, (fromInput, fromHidden, hidden) => hidden.set(hidden.map((_, i) => Math.tanh(fromInput[i] + fromHidden[i])))),
  ScatterElements: ([a, index, { data }], { axis = 0, reduction }) => {
    const result = a.data.slice();
    positions(a, index, axis).forEach((to, i) => (result[to] = reduction ? result[to] + data[i] : data[i]));
    return new Tensor(result, a.dims);
  },
  Shape: ([a]) => new Tensor(BigInt64Array.from(a.dims, BigInt), [a.dims.length]),
  Sigmoid: unary(sigmoid),
  Slice: ([a, starts, ends, axes, by]) => {
    if (by?.data.some((step) => step !== 1n)) throw new Error("Slice has steps of 1 only");
    return (axes ? numbers(axes) : [...starts.data.keys()]).reduce((tensor, axis, i) => {
      const [, n, inner, place] = around(tensor, axis);
      const [start, end] = [starts, ends].map(({ data }) => Math.max(0, Math.min(n, Number(data[i]) + (data[i] < 0 ? n : 0))));
      return strided(tensor.data, tensor.dims.with(place, Math.max(0, end - start)), stepsOf(tensor), start * inner);
    }, a);
  },
  Softmax: (inputs, attributes) => OPERATORS.Exp([OPERATORS.LogSoftmax(inputs, attributes)]),
  Squeeze: ([a, axes]) => numbers(axes).reduceRight((tensor, axis) => new Tensor(tensor.data, tensor.dims.toSpliced(axis, 1)), a),
  Sub: binary((x, y) => x - y, (x, y, result) => { for (let i = 0; i < x.length; i++) result[i] = x[i] - y[i]; }),
  Tanh: unary(Math.tanh),
  Tile: ([a, repeats]) => numbers(repeats).reduce((tensor, n, axis) => OPERATORS.Concat(Array(n).fill(tensor), { axis }), a),
  TopK: ([a, k], { axis, largest = 1 }) => {
    const [[outer, n], dims] = [around(a, axis), a.dims.with(axis, Number(k.data[0]))];
    const ids = Array.from({ length: outer }, (_, i) => best(part(a.data, i, n), dims.at(axis), largest));
    const values = ids.flatMap((chosen, i) => chosen.map((id) => a.data[i * n + id]));
    return [new Tensor(a.data.constructor.from(values), dims), new Tensor(BigInt64Array.from(ids.flat(), BigInt), dims)];
  },
  Transpose: ([a], { perm }) => strided(a.data, perm.map((axis) => a.dims[axis]), perm.map((axis) => stepsOf(a)[axis])),
  Unsqueeze: ([a, axes]) => numbers(axes).reduce(({ data, dims }, axis) =>
    new Tensor(data, dims.toSpliced(axis < 0 ? axis + dims.length + 1 : axis, 0, 1)), a),
  Where: (tensors) => {
    const [dims, isFirst, first, second] = aligned(tensors);
    return new Tensor(first.map((value, i) => (isFirst[i] ? value : second[i])), dims);
  },
};

const ARRAY_TYPES = { float32: Float32Array, int64: BigInt64Array, bool: Uint8Array, uint16: Uint16Array, int8: Int8Array };
// A graph that program.py has written, and its weights (ArrayBuffer).
class Graph {
  constructor({ inputs, outputs, tensors, nodes }, weights) {
    Object.assign(this, { inputs, outputs, nodes, constants: new Map() });
    for (const [name, { type, dims, at, scales }] of Object.entries(tensors)) {
      const tensor = new Tensor(new ARRAY_TYPES[type](weights, at, size(dims)), dims);
      if (scales !== undefined) tensor.scales = new Float32Array(weights, scales, size(dims.slice(0, -1)));
      this.constants.set(name, tensor);
    }
  }

  // {name: Tensor} of the inputs -> {name: Tensor} of the outputs
  run(given) {
    const values = new Map([...this.constants, ...Object.entries(given)]);
    for (const [operator, inputs, outputs, attributes] of this.nodes) {
      const result = OPERATORS[operator](inputs.map((name) => values.get(name)), attributes);
      if (result instanceof Tensor) values.set(outputs[0], result);
      else outputs.forEach((name, i) => values.set(name, result[i]));
    }
    return Object.fromEntries(this.outputs.map((name) => [name, values.get(name)]));
  }
}
