// Products of vectors with weights, in WebAssembly: kernel.wat.

const compiled = Uint8Array.from(atob(KERNEL), (character) => character.charCodeAt(0));
const kernel = new WebAssembly.Instance(new WebAssembly.Module(compiled)).exports;
let heapEnd = 16; // of its memory, as far as weights fill it; a product may use the rest

const roundUp = (n, step) => Math.ceil(n / step) * step;
const part = (values, i, length) => values.subarray(i * length, (i + 1) * length);

// A part of the kernel's memory. If the memory has to grow for it, earlier views are of no use.
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

// A matrix of weights with its bias, in the memory of the kernel, in the order in which it reads.
class Matrix {
  // Takes the matrix at `index` of weights [.., outputs, columns], float32 or int8 with scales;
  // bias [outputs], or none.
  constructor({ data, dims, scales }, bias, index = 0) {
    const [outputs, columns] = dims.slice(-2);
    const step = 16 / data.BYTES_PER_ELEMENT;
    const [rows, width] = [roundUp(outputs, 4), roundUp(columns, step)]; // zeros fill the last ones
    const filled = new data.constructor(rows * width);
    for (let row = 0; row < outputs; row++) {
      filled.set(part(data, index * outputs + row, columns), row * width);
    }
    const order = strided(filled, [rows / 4, width / step, 4, step], [4 * width, step, width, 1]);
    const padded = (values) => Float32Array.from({ length: rows }, (_, i) => values?.[i] ?? 0);
    Object.assign(this, { outputs, columns, rows, width });
    this.rowBytes = width * data.BYTES_PER_ELEMENT;
    this.at = store(order.data);
    this.bias = store(padded(bias));
    this.scales = scales ? store(padded(part(scales, index, outputs))) : 0;
  }

  // x [n, columns] -> [n, outputs]
  multiply(x, n) {
    const { outputs, columns, rows, width, scales } = this;
    const scalesAt = heapEnd + 4 * n * width;
    const outputAt = roundUp(scalesAt + 4 * n, 16);
    // The last one first: it may make the memory grow.
    const output = view(Float32Array, outputAt, n * rows);
    const input = view(scales ? Int16Array : Float32Array, heapEnd, n * width).fill(0);
    const inputScales = view(Float32Array, scalesAt, n);
    for (let i = 0; i < n; i++) {
      const row = part(x, i, columns);
      if (scales) inputScales[i] = toIntegers(row, input.subarray(i * width));
      else input.set(row, i * width);
    }
    const { at, bias, rowBytes } = this;
    kernel.multiply(heapEnd, scalesAt, at, scales, bias, outputAt, n, rows, rowBytes);
    return rows === outputs ? output.slice() : strided(output, [n, outputs], [rows, 1]).data;
  }
}

// Values as integers of 15 bits, far finer than the weights, times a scale, which it returns; of
// fewer bits if sums would not fit int32.
function toIntegers(values, target) {
  let largest = 1e-30;
  for (let i = 0; i < values.length; i++) largest = Math.max(largest, Math.abs(values[i]));
  const scale = largest / Math.min(32767, Math.floor(2 ** 26 / values.length));
  for (let i = 0; i < values.length; i++) target[i] = Math.round(values[i] / scale);
  return scale;
}
