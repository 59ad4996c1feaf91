// Runs the graphs of a translator: operators of ONNX in JavaScript, and products with weights in WebAssembly (kernel.wat).

const KERNEL =
  "AGFzbQEAAAABFQJgBHt7e3sBe2AJf39/f39/f39/AAMDAgABBQMBAAEHFQIGbWVtb3J5AgAIbXVsdGlwbHkAAQqZBQKTAQAgACAB/Q0AAQIDEBESEwQFBgcUFRYXIAAgAf0NCAkKCxgZ" +
  "GhsMDQ4PHB0eH/3kASEAIAIgA/0NAAECAxAREhMEBQYHFBUWFyACIAP9DQgJCgsYGRobDA0ODxwdHh/95AEhAiAAIAL9DQABAgMEBQYHEBESExQVFhcgACAC/Q0ICQoLDA0ODxgZGhsc" +
  "HR4f/eQBC4EEAgd/B3sDQCAAIQogBSENQQAhDiACIAhBAnRqIQ8DQCACIQz9DAAAAAAAAAAAAAAAAAAAAAAiFiIVIhQhEyADBEADQCAK/QAEACERIAr9AAQQIRIgDP0ABAAhECATIBEg" +
  "EP2HAf26ASASIBD9iAH9ugH9rgH9rgEhEyAM/QAEECEQIBQgESAQ/YcB/boBIBIgEP2IAf26Af2uAf2uASEUIAz9AAQgIRAgFSARIBD9hwH9ugEgEiAQ/YgB/boB/a4B/a4BIRUgDP0A" +
  "BDAhECAWIBEgEP2HAf26ASASIBD9iAH9ugH9rgH9rgEhFiAKQSBqIQogDEHAAGoiDCAPSQ0ACyAT/foBIBT9+gEgFf36ASAW/foBEAAhECABIA5BAnRq/QkCACERIBAgESAD/QAEAP3m" +
  "Af3mASEQBQNAIAr9AAQAIREgEyARIAz9AAQA/eYB/eQBIRMgFCARIAz9AAQQ/eYB/eQBIRQgFSARIAz9AAQg/eYB/eQBIRUgFiARIAz9AAQw/eYB/eQBIRYgCkEQaiEKIAxBwABqIgwg" +
  "D0kNAAsgEyAUIBUgFhAAIRALIA0gECAE/QAEAP3kAf0LBAAgDSAHQQJ0aiENIA5BAWoiDiAGSQ0ACyAPIQIgBUEQaiEFIARBEGohBCADBEAgA0EQaiEDCyAJQQRqIgkgB0kNAAsLALAB" +
  "BG5hbWUBBwEABHN1bXMCegIABAABYQEBYgIBYwMBZAEXAAF4AQd4U2NhbGVzAgF3AwZzY2FsZXMEBGJpYXMFAXkGAU0HAU4IB2NvbHVtbnMJAW4KA3hBdAsGeFNjYWxlDAN3QXQNA3lB" +
  "dA4Dcm93DwR3RW5kEAF0EQF1EgF2EwFhFAFiFQFjFgFkAyQBAQQAB291dHB1dHMBBHJvd3MDCGludGVnZXJzBAZmbG9hdHM=";

let kernel; // what the compiled kernel.wat exports
let heapEnd = 16; // of the kernel's memory, as far as weights fill it; what lies behind is free for products

// Must have ended before the first Graph is made.
async function startKernel() {
  const bytes = Uint8Array.from(atob(KERNEL), (character) => character.charCodeAt(0));
  kernel ??= (await WebAssembly.instantiate(bytes)).instance.exports;
}

// The address behind the weights, where there is room for so many bytes.
function reserve(bytes) {
  const missing = heapEnd + bytes - kernel.memory.buffer.byteLength;
  if (missing > 0) kernel.memory.grow(Math.ceil(missing / 65536));
  return heapEnd;
}

// The address of new zeros in the memory of the kernel, into which `fill` writes.
function store(ArrayType, length, fill) {
  const at = reserve(length * ArrayType.BYTES_PER_ELEMENT);
  const target = new ArrayType(kernel.memory.buffer, at, length).fill(0);
  fill(target);
  heapEnd = roundUp(at + target.byteLength, 16);
  return at;
}

// data: Float32Array, BigInt64Array (int64) or Uint8Array (bool); constants may have others, see `Gather`.
class Tensor {
  constructor(data, dims) {
    this.data = data;
    this.dims = dims;
  }
}

// A matrix of weights with its bias, in the memory of the kernel, in the order in which it reads them.
class Matrix {
  // data [outputs, columns]: float32, or int8 with scales [outputs]. bias [outputs], or none.
  constructor(data, outputs, columns, scales, bias) {
    const step = 16 / data.BYTES_PER_ELEMENT;
    const rows = roundUp(outputs, 4); // zeros fill rows and columns
    const width = roundUp(columns, step);
    Object.assign(this, { outputs, columns, rows, width, bytes: width * data.BYTES_PER_ELEMENT });
    this.at = store(data.constructor, rows * width, (target) => {
      for (let row = 0, from = 0; row < outputs; row++) {
        for (let column = 0; column < columns; column += step) {
          let to = ((row >> 2) * width + column) * 4 + (row & 3) * step;
          for (const end = from + Math.min(step, columns - column); from < end; ) target[to++] = data[from++];
        }
      }
    });
    this.bias = store(Float32Array, rows, (target) => bias && target.set(bias));
    this.scales = scales ? store(Float32Array, rows, (target) => target.set(scales)) : 0;
  }

  // x [n, columns] -> [n, outputs]
  multiply(x, n) {
    const { outputs, columns, rows, width, scales } = this;
    const ArrayType = scales ? Int16Array : Float32Array;
    const at = reserve(n * (width * ArrayType.BYTES_PER_ELEMENT + 4 * rows + 4) + 16);
    const input = new ArrayType(kernel.memory.buffer, at, n * width);
    const scalesAt = at + input.byteLength;
    const outputAt = roundUp(scalesAt + 4 * n, 16);
    if (scales) this.#toIntegers(x, input, new Float32Array(kernel.memory.buffer, scalesAt, n));
    else if (width === columns) input.set(x);
    else {
      input.fill(0);
      for (let i = 0; i < n; i++) input.set(x.subarray(i * columns, (i + 1) * columns), i * width);
    }
    kernel.multiply(at, scalesAt, this.at, scales, this.bias, outputAt, n, rows, this.bytes);
    const output = new Float32Array(kernel.memory.buffer, outputAt, n * rows);
    if (rows === outputs) return output.slice();
    const result = new Float32Array(n * outputs);
    for (let i = 0; i < n; i++) result.set(output.subarray(i * rows, i * rows + outputs), i * outputs);
    return result;
  }

  // x as integers so small that the kernel can add their products with weights in int32. They have 15 bits, the weights 7: what is
  // rounded here does not count beside the rounding of the weights.
  #toIntegers(x, target, scales) {
    const { columns, width } = this;
    const limit = Math.min(32767, Math.floor(2 ** 26 / columns));
    for (let i = 0; i < scales.length; i++) {
      let largest = 1e-30;
      for (let j = i * columns; j < (i + 1) * columns; j++) largest = Math.max(largest, Math.abs(x[j]));
      scales[i] = largest / limit;
      const factor = limit / largest;
      for (let j = 0; j < columns; j++) target[i * width + j] = Math.round(x[i * columns + j] * factor);
      target.fill(0, i * width + columns, (i + 1) * width);
    }
  }
}

const size = (dims) => dims.reduce((product, n) => product * n, 1);
const roundUp = (n, step) => Math.ceil(n / step) * step;
const numbers = (tensor) => Array.from(tensor.data, Number);
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// A tensor as three axes [outer, n, inner], of which the middle one is `axis`; and `axis`, counted from the first.
function around({ dims }, axis) {
  if (axis < 0) axis += dims.length;
  return [size(dims.slice(0, axis)), dims[axis], size(dims.slice(axis + 1)), axis];
}

function broadcast(dims, others) {
  const n = Math.max(dims.length, others.length);
  const at = (list, i) => list[list.length - n + i] ?? 1;
  return Array.from({ length: n }, (_, i) => (at(dims, i) === 1 ? at(others, i) : at(dims, i)));
}

// The data of a tensor that is repeated along the axes where it has size 1.
function spread({ data, dims }, target) {
  if (data.length === size(target)) return data;
  if (data.length === 1) return new data.constructor(size(target)).fill(data[0]);
  for (let axis = target.length - 1, inner = 1; axis >= 0; axis--) {
    const count = target[axis];
    if (count !== (dims[dims.length - target.length + axis] ?? 1)) {
      const result = new data.constructor(data.length * count);
      for (let from = 0, to = 0; from < data.length; from += inner) {
        const part = data.subarray(from, from + inner);
        for (let i = 0; i < count; i++, to += inner) result.set(part, to);
      }
      data = result;
    }
    inner *= count;
  }
  return data;
}

function unary(compute) {
  return ([a]) => new Tensor(a.data.map(compute), a.dims);
}

function binary(compute, ResultType) {
  return ([a, b]) => {
    const dims = broadcast(a.dims, b.dims);
    const x = spread(a, dims);
    const y = spread(b, dims);
    const result = new (ResultType ?? x.constructor)(x.length);
    for (let i = 0; i < result.length; i++) result[i] = compute(x[i], y[i]);
    return new Tensor(result, dims);
  };
}

const test = (compare) => binary((x, y) => (compare(x, y) ? 1 : 0), Uint8Array);

// compute: the values of neighbouring axes -> a value. All axes, if none are named.
function reduction(compute) {
  return ([a, axesTensor], { axes, keepdims = 1 }) => {
    axes = axesTensor ? numbers(axesTensor) : (axes ?? [...a.dims.keys()]);
    axes = axes.map((axis) => (axis < 0 ? axis + a.dims.length : axis)).sort((one, other) => one - other);
    const n = size(axes.map((axis) => a.dims[axis]));
    const inner = size(a.dims.slice(axes.at(-1) + 1));
    const result = new a.data.constructor(a.data.length / n);
    for (let i = 0; i < result.length; i++) {
      const first = Math.floor(i / inner) * n * inner + (i % inner);
      const values = inner === 1 ? a.data.subarray(first, first + n) : new a.data.constructor(n);
      if (inner > 1) for (let j = 0; j < n; j++) values[j] = a.data[first + j * inner];
      result[i] = compute(values);
    }
    return new Tensor(result, a.dims.flatMap((n, axis) => (!axes.includes(axis) ? [n] : keepdims ? [1] : [])));
  };
}

// compute: the values of the last axis -> values in their place.
function alongLast(compute) {
  return ([a, ...others], { axis = -1, ...attributes }) => {
    if (axis !== -1 && axis !== a.dims.length - 1) throw new Error(`axis ${axis} of ${a.dims.length} is not the last`);
    const n = a.dims.at(-1);
    const result = new Float32Array(a.data.length);
    for (let i = 0; i < result.length; i += n) {
      compute(a.data.subarray(i, i + n), result.subarray(i, i + n), others.map((other) => other.data), attributes);
    }
    return new Tensor(result, a.dims);
  };
}

function maximum(values) {
  let largest = values[0];
  for (const value of values) if (value > largest) largest = value;
  return largest;
}

function sum(values) {
  let total = values[0];
  for (let i = 1; i < values.length; i++) total += values[i];
  return total;
}

function logSumExp(values) {
  const largest = maximum(values);
  let total = 0;
  for (let i = 0; i < values.length; i++) total += Math.exp(values[i] - largest);
  return largest + Math.log(total);
}

// The positions of the k largest (smallest) values, in order; of equal ones, the first.
function best(values, k, isLargest) {
  const isBefore = isLargest ? (i, j) => values[i] > values[j] : (i, j) => values[i] < values[j];
  if (k > 64) {
    const order = (i, j) => (isBefore(i, j) ? -1 : isBefore(j, i) ? 1 : 0);
    return Array.from(values.keys()).sort(order).slice(0, k);
  }
  const chosen = [];
  for (let i = 0; i < values.length; i++) {
    if (chosen.length === k && !isBefore(i, chosen[k - 1])) continue;
    let place = Math.min(chosen.length, k - 1);
    for (; place > 0 && isBefore(i, chosen[place - 1]); place--) chosen[place] = chosen[place - 1];
    chosen[place] = i;
  }
  return chosen;
}

// a [B.., m, k] x b [B.., k, n], of which none need be constant.
function matrixProduct([a, b]) {
  const [m, k] = a.dims.slice(-2);
  const n = b.dims.at(-1);
  const batch = broadcast(a.dims.slice(0, -2), b.dims.slice(0, -2));
  const x = spread(a, [...batch, m, k]);
  const y = spread(b, [...batch, k, n]);
  const result = new Float32Array(size(batch) * m * n);
  for (let row = 0; row < size(batch) * m; row++) {
    const to = row * n;
    for (let i = 0; i < k; i++) {
      const factor = x[row * k + i];
      const from = (Math.floor(row / m) * k + i) * n;
      for (let j = 0; j < n; j++) result[to + j] += factor * y[from + j];
    }
  }
  return new Tensor(result, [...batch, m, n]);
}

// Positions in `data` [outer, n, inner] of the elements of `index` [outer, m, inner], which counts along `axis`.
function positions(data, index, axis) {
  const [outer, n, inner] = around(data, axis);
  const [indexOuter, m, indexInner] = around(index, axis);
  if (outer !== indexOuter || inner !== indexInner) throw new Error(`an index of [${index.dims}] for [${data.dims}]`);
  const result = new Int32Array(index.data.length);
  for (let i = 0; i < result.length; i++) {
    result[i] = (Math.floor(i / (m * inner)) * n + Number(index.data[i])) * inner + (i % inner);
  }
  return result;
}

// A layer of a cell over x [S, B, I], forward or in both directions: its outputs [S, directions, B, H], and the last states
// [directions, B, H]. `advance` changes the states [H] of one row; it is given the parts of the gates from input and hidden state.
function layer(nStates, advance) {
  return ([x, , , , lengths], { inputs, recurrent }) => {
    const [nSteps, nRows] = x.dims;
    const hidden = recurrent[0].columns;
    const directions = inputs.length;
    const outputs = new Float32Array(nSteps * directions * nRows * hidden);
    const states = Array.from({ length: nStates }, () => new Float32Array(directions * nRows * hidden));
    const rowOf = (values, row, length) => values.subarray(row * length, (row + 1) * length);
    for (let direction = 0; direction < directions; direction++) {
      const fromInput = inputs[direction].multiply(x.data, nSteps * nRows);
      const nGates = inputs[direction].outputs;
      for (let step = 0; step < nSteps; step++) {
        const time = direction ? nSteps - 1 - step : step;
        const fromHidden = recurrent[direction].multiply(rowOf(states[0], direction, nRows * hidden), nRows);
        for (let row = 0; row < nRows; row++) {
          if (time >= lengths.data[row]) continue;
          const own = states.map((state) => rowOf(state, direction * nRows + row, hidden));
          advance(rowOf(fromInput, time * nRows + row, nGates), rowOf(fromHidden, row, nGates), ...own);
          outputs.set(own[0], ((time * directions + direction) * nRows + row) * hidden);
        }
      }
    }
    const lasts = states.map((state) => new Tensor(state, [directions, nRows, hidden]));
    return [new Tensor(outputs, [nSteps, directions, nRows, hidden]), ...lasts];
  };
}

// The operators, as ONNX defines them: (inputs, attributes) -> output, or a list of outputs. One more is here: `Linear`, a product with
// constant weights. program.py reads the names in this table.
const OPERATORS = {
  Abs: unary((x) => (x < 0 ? -x : x)),
  Add: binary((x, y) => x + y),
  And: test((x, y) => x && y),
  ArgMax: ([a], { axis = 0, keepdims = 1 }) => {
    const [outer, n, inner, middle] = around(a, axis);
    const result = new BigInt64Array(outer * inner);
    for (let i = 0; i < result.length; i++) {
      const at = (j) => a.data[(Math.floor(i / inner) * n + j) * inner + (i % inner)];
      let largest = 0;
      for (let j = 1; j < n; j++) if (at(j) > at(largest)) largest = j;
      result[i] = BigInt(largest);
    }
    return new Tensor(result, a.dims.toSpliced(middle, 1, ...(keepdims ? [1] : [])));
  },
  Cast: ([a], { to }) => {
    if (to === 1) return new Tensor(Float32Array.from(a.data, Number), a.dims);
    if (to === 9) return new Tensor(Uint8Array.from(a.data, (x) => (Number(x) ? 1 : 0)), a.dims);
    return a.data instanceof BigInt64Array ? a : new Tensor(BigInt64Array.from(a.data, (x) => BigInt(Math.trunc(x))), a.dims);
  },
  Clip: ([a, low, high]) => {
    const limited = a.data.map((x) => (low && x < low.data[0] ? low.data[0] : high && x > high.data[0] ? high.data[0] : x));
    return new Tensor(limited, a.dims);
  },
  Concat: (all, { axis }) => {
    const [outer, , , middle] = around(all[0], axis);
    const n = all.reduce((total, { dims }) => total + dims[middle], 0);
    const dims = all[0].dims.with(middle, n);
    const result = new all[0].data.constructor(size(dims));
    for (let i = 0, to = 0; i < outer; i++) {
      for (const { data } of all) {
        const length = data.length / outer;
        result.set(data.subarray(i * length, (i + 1) * length), to);
        to += length;
      }
    }
    return new Tensor(result, dims);
  },
  CumSum: ([a, axis]) => {
    const [, n, inner] = around(a, Number(axis.data[0]));
    const result = a.data.slice();
    for (let i = 0; i < result.length; i++) if (Math.floor(i / inner) % n) result[i] += result[i - inner];
    return new Tensor(result, a.dims);
  },
  Div: binary((x, y) => x / y),
  Equal: test((x, y) => x === y),
  Exp: unary(Math.exp),
  Expand: ([a, shape]) => {
    const dims = broadcast(a.dims, numbers(shape));
    return new Tensor(spread(a, dims), dims);
  },
  Flatten: ([a], { axis = 1 }) => new Tensor(a.data, [size(a.dims.slice(0, axis)), size(a.dims.slice(axis))]),
  Gather: ([a, index], { axis = 0 }) => {
    const [outer, n, inner, middle] = around(a, axis);
    const at = numbers(index);
    let result = new (a.scales ? Float32Array : a.data.constructor)(outer * at.length * inner);
    for (let i = 0, to = 0; i < outer; i++) {
      for (const position of at) {
        const from = (i * n + (position < 0 ? position + n : position)) * inner;
        const values = a.data.subarray(from, from + inner);
        result.set(a.scales ? Float32Array.from(values, (x) => x * a.scales[from / inner]) : values, to);
        to += inner;
      }
    }
    if (result instanceof Uint16Array) result = BigInt64Array.from(result, BigInt);
    return new Tensor(result, a.dims.toSpliced(middle, 1, ...index.dims));
  },
  GatherElements: ([a, index], { axis = 0 }) => {
    const result = new a.data.constructor(index.data.length);
    positions(a, index, axis).forEach((from, i) => (result[i] = a.data[from]));
    return new Tensor(result, index.dims);
  },
  Greater: test((x, y) => x > y),
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
  LayerNormalization: alongLast((values, result, [weight, bias], { epsilon = 1e-5 }) => {
    const mean = sum(values) / values.length;
    const variance = values.reduce((total, x) => total + (x - mean) ** 2, 0) / values.length;
    const factor = 1 / Math.sqrt(variance + epsilon);
    for (let i = 0; i < values.length; i++) result[i] = (values[i] - mean) * factor * weight[i] + (bias ? bias[i] : 0);
  }),
  Less: test((x, y) => x < y),
  LessOrEqual: test((x, y) => x <= y),
  Linear: ([a], { matrix }) => {
    const result = matrix.multiply(a.data, a.data.length / matrix.columns);
    return new Tensor(result, a.dims.with(-1, matrix.outputs));
  },
  Log: unary(Math.log),
  LogSoftmax: alongLast((values, result) => {
    const total = logSumExp(values);
    for (let i = 0; i < values.length; i++) result[i] = values[i] - total;
  }),
  LSTM: layer(2, (fromInput, fromHidden, hidden, cell) => {
    const n = hidden.length;
    const gate = (i) => fromInput[i] + fromHidden[i];
    for (let i = 0; i < n; i++) {
      cell[i] = sigmoid(gate(2 * n + i)) * cell[i] + sigmoid(gate(i)) * Math.tanh(gate(3 * n + i));
      hidden[i] = sigmoid(gate(n + i)) * Math.tanh(cell[i]);
    }
  }),
  MatMul: matrixProduct,
  Min: (all) => all.reduce((a, b) => binary((x, y) => (x < y ? x : y))([a, b])),
  Mod: binary((x, y) => ((x % y) + y) % y),
  Mul: binary((x, y) => x * y),
  Neg: unary((x) => -x),
  Not: unary((x) => (x ? 0 : 1)),
  Or: test((x, y) => x || y),
  Pow: binary((x, y) => x ** y),
  Range: ([start, end, step]) => {
    const result = [];
    for (let x = start.data[0]; x < end.data[0]; x += step.data[0]) result.push(x);
    return new Tensor(start.data.constructor.from(result), [result.length]);
  },
  ReduceLogSumExp: reduction(logSumExp),
  ReduceMax: reduction(maximum),
  ReduceMean: reduction((values) => sum(values) / values.length),
  ReduceSum: reduction(sum),
  Reshape: ([a, shape]) => {
    const dims = numbers(shape).map((n, i) => n || a.dims[i]);
    const known = size(dims.filter((n) => n >= 0));
    return new Tensor(a.data, dims.map((n) => (n < 0 ? a.data.length / known : n)));
  },
  RNN: layer(1, (fromInput, fromHidden, hidden) => {
    for (let i = 0; i < hidden.length; i++) hidden[i] = Math.tanh(fromInput[i] + fromHidden[i]);
  }),
  ScatterElements: ([a, index, updates], { axis = 0, reduction }) => {
    const result = a.data.slice();
    const isSum = reduction === "add";
    positions(a, index, axis).forEach((to, i) => (result[to] = isSum ? result[to] + updates.data[i] : updates.data[i]));
    return new Tensor(result, a.dims);
  },
  Shape: ([a]) => new Tensor(BigInt64Array.from(a.dims, BigInt), [a.dims.length]),
  Sigmoid: unary(sigmoid),
  Slice: ([a, starts, ends, axes, steps]) => {
    if (steps?.data.some((step) => step !== 1n)) throw new Error("Slice only goes by steps of 1");
    return numbers(starts).reduce((tensor, start, i) => {
      const [outer, n, inner, axis] = around(tensor, axes ? Number(axes.data[i]) : i);
      const [first, last] = [start, Number(ends.data[i])].map((x) => Math.max(0, Math.min(x < 0 ? x + n : x, n)));
      const count = Math.max(0, last - first);
      const length = count * inner;
      const result = new tensor.data.constructor(outer * length);
      for (let j = 0; j < outer; j++) {
        const from = (j * n + first) * inner;
        result.set(tensor.data.subarray(from, from + length), j * length);
      }
      return new Tensor(result, tensor.dims.with(axis, count));
    }, a);
  },
  Softmax: alongLast((values, result) => {
    const total = logSumExp(values);
    for (let i = 0; i < values.length; i++) result[i] = Math.exp(values[i] - total);
  }),
  Squeeze: ([a, axes]) => {
    const left = numbers(axes).map((axis) => around(a, axis)[3]);
    return new Tensor(a.data, a.dims.filter((_, axis) => !left.includes(axis)));
  },
  Sub: binary((x, y) => x - y),
  Tanh: unary(Math.tanh),
  Tile: ([a, repeats]) => numbers(repeats).reduce((tensor, n, axis) => OPERATORS.Concat(Array(n).fill(tensor), { axis }), a),
  TopK: ([a, k], { axis = -1, largest = 1 }) => {
    const n = around(a, axis)[1];
    const dims = a.dims.with(axis, Number(k.data[0]));
    const values = new a.data.constructor(size(dims));
    const ids = new BigInt64Array(size(dims));
    for (let from = 0, to = 0; from < a.data.length; from += n) {
      for (const i of best(a.data.subarray(from, from + n), dims.at(-1), largest)) {
        values[to] = a.data[from + i];
        ids[to++] = BigInt(i);
      }
    }
    return [new Tensor(values, dims), new Tensor(ids, dims)];
  },
  Transpose: ([a], { perm }) => {
    const dims = perm.map((axis) => a.dims[axis]);
    const steps = perm.map((axis) => around(a, axis)[2]);
    const result = new a.data.constructor(a.data.length);
    const last = dims.length - 1;
    const at = dims.map(() => 0);
    for (let to = 0, from = 0; to < result.length; ) {
      for (let i = 0; i < dims[last]; i++) result[to++] = a.data[from + i * steps[last]];
      for (let axis = last - 1; axis >= 0; axis--) {
        from += steps[axis];
        if (++at[axis] < dims[axis]) break;
        from -= steps[axis] * dims[axis];
        at[axis] = 0;
      }
    }
    return new Tensor(result, dims);
  },
  Unsqueeze: ([a, axes]) => {
    const n = a.dims.length + axes.data.length;
    const places = numbers(axes).map((axis) => (axis < 0 ? axis + n : axis)).sort((one, other) => one - other);
    return new Tensor(a.data, places.reduce((dims, place) => dims.toSpliced(place, 0, 1), a.dims));
  },
  Where: ([condition, a, b]) => {
    const dims = broadcast(condition.dims, broadcast(a.dims, b.dims));
    const [isFirst, x, y] = [condition, a, b].map((tensor) => spread(tensor, dims));
    return new Tensor(x.map((value, i) => (isFirst[i] ? value : y[i])), dims);
  },
};

const ARRAY_TYPES = { float32: Float32Array, int64: BigInt64Array, bool: Uint8Array, uint16: Uint16Array, int8: Int8Array };

// Weights [.., outputs, columns] for the kernel; of several matrices, the one at `index`.
function toMatrix({ data, dims, scales }, bias, index = 0) {
  const [outputs, columns] = dims.slice(-2);
  const part = (values, length) => values.subarray(index * length, (index + 1) * length);
  return new Matrix(part(data, outputs * columns), outputs, columns, scales && part(scales, outputs), bias);
}

// A graph that program.py has written, and its weights (ArrayBuffer).
class Graph {
  constructor({ inputs, outputs, tensors, nodes }, weights) {
    this.inputs = inputs;
    this.outputs = outputs;
    this.constants = new Map();
    for (const [name, { type, dims, at, scales }] of Object.entries(tensors)) {
      const tensor = new Tensor(new ARRAY_TYPES[type](weights, at, size(dims)), dims);
      if (scales !== undefined) tensor.scales = new Float32Array(weights, scales, size(dims.slice(0, -1)));
      this.constants.set(name, tensor);
    }
    this.nodes = nodes.filter((node) => !this.#isDone(node));
  }

  // Prepares the weights of a node. Whether it has only constants: then its outputs are constants, too.
  #isDone([operator, inputs, outputs, attributes]) {
    const given = inputs.map((name) => this.constants.get(name));
    if (operator === "Linear") attributes.matrix = toMatrix(given[1], given[2]?.data);
    if (["LSTM", "GRU", "RNN"].includes(operator)) {
      const [, input, recurrent, { data: bias }] = given;
      const directions = [...Array(input.dims[0]).keys()];
      const biasOf = (index) => bias.subarray(index * input.dims[1], (index + 1) * input.dims[1]);
      attributes.inputs = directions.map((direction) => toMatrix(input, biasOf(2 * direction), direction));
      attributes.recurrent = directions.map((direction) => toMatrix(recurrent, biasOf(2 * direction + 1), direction));
    }
    const isDone = given.every((tensor, i) => tensor || !inputs[i]);
    if (isDone) compute(this.constants, [operator, inputs, outputs, attributes]);
    return isDone;
  }

  // {name: Tensor} of the inputs -> {name: Tensor} of the outputs
  run(given) {
    const values = new Map([...this.constants, ...Object.entries(given)]);
    for (const node of this.nodes) compute(values, node);
    return Object.fromEntries(this.outputs.map((name) => [name, values.get(name)]));
  }
}

// Adds the outputs of a node to the tensors by name.
function compute(tensors, [operator, inputs, outputs, attributes]) {
  const results = [OPERATORS[operator](inputs.map((name) => tensors.get(name)), attributes)].flat();
  outputs.forEach((name, i) => tensors.set(name, results[i]));
}
