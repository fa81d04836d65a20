// Runs ONNX Runtime on arrays: node run.js MODEL OUT [NAME=]x.npy... writes OUT/NAME.npy for every output and prints
// names, types and shapes as JSON; node run.js MODEL prints those of the inputs, open axes as null. Packages are those of
// package-lock.json, in NODE_PATH or beside this file. The graph runs as it is: ORT_OPTIMIZATION=all lets fusions change results.
'use strict';
const fs = require('fs');
const path = require('path');
const ort = require('onnxruntime-node');

// Types of elements: as ONNX Runtime calls them, in NumPy's files, and their number in TensorProto.DataType.
const TYPES = [
  ['float32', '<f4', Float32Array, 1], ['uint8', '|u1', Uint8Array, 2], ['int8', '|i1', Int8Array, 3],
  ['uint16', '<u2', Uint16Array, 4], ['int16', '<i2', Int16Array, 5], ['int32', '<i4', Int32Array, 6],
  ['int64', '<i8', BigInt64Array, 7], ['bool', '|b1', Uint8Array, 9], ['float16', '<f2', Uint16Array, 10],
  ['float64', '<f8', Float64Array, 11], ['uint32', '<u4', Uint32Array, 12], ['uint64', '<u8', BigUint64Array, 13],
];

function readNpy(file) {
  const bytes = fs.readFileSync(file);
  const wide = bytes[6] > 1;
  const start = wide ? 12 : 10;
  const end = start + (wide ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8));
  const header = bytes.toString('latin1', start, end);
  const descr = /'descr': '([^']+)'/.exec(header)[1];
  if (/'fortran_order': True/.test(header)) throw new Error(`${file}: expected rows first`);
  const dims = /'shape': \(([^)]*)\)/.exec(header)[1].split(',').map((t) => t.trim()).filter((t) => t).map(Number);
  const type = TYPES.find((row) => row[1] === descr);
  if (!type) throw new Error(`${file}: unknown type ${descr}`);
  const raw = bytes.buffer.slice(bytes.byteOffset + end, bytes.byteOffset + bytes.length);
  return {type: type[0], data: new type[2](raw), dims};
}

function writeNpy(file, tensor) {
  const descr = tensor.type === 'bool' ? '|i1' : TYPES.find((row) => row[0] === tensor.type)[1];
  const dims = tensor.dims.join(', ') + (tensor.dims.length === 1 ? ',' : '');
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${dims}), }`;
  header += ' '.repeat(63 - (10 + header.length) % 64) + '\n';
  const size = Buffer.alloc(2);
  size.writeUInt16LE(header.length);
  const {buffer, byteOffset, byteLength} = tensor.data;
  fs.writeFileSync(file, Buffer.concat([
    Buffer.from('\x93NUMPY\x01\x00', 'latin1'), size, Buffer.from(header, 'latin1'),
    Buffer.from(buffer, byteOffset, byteLength)]));
}

// The fields of a protobuf message: [number, value], lengths as their bytes.
function* fields(bytes) {
  let at = 0;
  const number = () => {
    let value = 0n, shift = 0n;
    for (;; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(value);
    }
  };
  while (at < bytes.length) {
    const key = number(), kind = key & 7;
    if (kind === 0) yield [key >>> 3, number()];
    else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else {
      const length = number();
      yield [key >>> 3, bytes.subarray(at, at += length)];
    }
  }
}
const all = (bytes, field) => [...fields(bytes)].filter(([n]) => n === field).map(([, value]) => value);

// The inputs that are no initializers: ModelProto.graph.input.type.tensor_type.{elem_type, shape.dim.dim_value}.
function inputsOf(model) {
  const graph = all(model, 7)[0];
  const initial = new Set(all(graph, 5).map((tensor) => String(all(tensor, 8)[0])));
  const inputs = {};
  for (const info of all(graph, 11)) {
    const name = String(all(info, 1)[0]);
    if (initial.has(name)) continue;
    const tensor = all(all(info, 2)[0], 1)[0];
    const dims = all(tensor, 2).flatMap((shape) => all(shape, 1));
    inputs[name] = {type: TYPES.find((row) => row[3] === all(tensor, 1)[0])[0],
                    shape: dims.map((dim) => all(dim, 1)[0] ?? null)};
  }
  return inputs;
}

// Numbers of another type: tokens and masks may be stored as floats.
function converted(array, type) {
  if (array.type === type || type === 'float16') return array;
  const of = TYPES.find((row) => row[0] === type)[2];
  const wide = of === BigInt64Array || of === BigUint64Array;
  return {type, dims: array.dims, data: of.from(Array.from(array.data), (v) => (wide ? BigInt(v) : Number(v)))};
}

async function main([model, out, ...arrays]) {
  const bytes = fs.readFileSync(model);
  const inputs = inputsOf(bytes);
  if (!out) return console.log(JSON.stringify(inputs));
  const feeds = {};
  for (const text of arrays) {
    const equals = text.indexOf('=');
    const name = equals < 0 ? Object.keys(inputs)[0] : text.slice(0, equals);
    if (!(name in inputs)) throw new Error(`no input ${name}`);
    const array = converted(readNpy(text.slice(equals + 1)), inputs[name].type);
    feeds[name] = new ort.Tensor(array.type, array.data, array.dims);
  }
  const level = process.env.ORT_OPTIMIZATION || 'disabled';
  const session = await ort.InferenceSession.create(
      path.resolve(model), {graphOptimizationLevel: level, intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3});
  const results = await session.run(feeds);
  const shown = [];
  for (const name of session.outputNames) {
    const tensor = results[name];
    const file = path.join(out, `${encodeURIComponent(name)}.npy`);
    writeNpy(file, tensor);
    shown.push({name, type: tensor.type, shape: tensor.dims, file});
  }
  console.log(JSON.stringify({inputs: session.inputNames, outputs: shown}));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(String(error.message || error).split('\n')[0]);
  process.exit(1);
});
