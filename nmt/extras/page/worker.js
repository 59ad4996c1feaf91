// The worker: loads the runs, and answers the requests of the page one after the other.

const PATIENCE = 1000; // milliseconds until the page says that it is at work

const translators = new Map(); // name of a run -> promise of its translator
let queue = Promise.resolve();
let current; // the request that is being answered

// A request comes with a port: for { progress } on the way, and for { answer } or { error }.
onmessage = ({ data, ports: [port] }) => {
  queue = queue.then(() => respond(data, port));
};

async function respond({ path, body }, port) {
  const request = { port, start: performance.now(), isCancelled: false };
  port.onmessage = () => (request.isCancelled = true); // nobody waits for the answer
  current = request;
  try {
    await pause(); // it may be cancelled already
    if (path === "/load") translators.set(body.run, load(body));
    const translator = await translators.get(body.run);
    const answer = path === "/load" || (await translator[path.slice(1)](body));
    port.postMessage({ answer });
  } catch ({ message }) {
    port.postMessage({ error: message });
  }
}

// To wait for between the parts of an answer: lets messages come in; ends a cancelled request.
async function pause() {
  const { port, start } = current;
  if (performance.now() - start > PATIENCE) port.postMessage({ progress: "Translating…" });
  await new Promise((resolve) => setTimeout(resolve));
  if (current.isCancelled) throw new Error("cancelled");
}

async function load({ run, model, weights }) {
  current.port.postMessage({ progress: `Loading ${run}…` });
  const files = await Promise.all([model, weights].map(read));
  try {
    const [parts, numbers] = await Promise.all(files.map(unpack));
    return new Translator(JSON.parse(new TextDecoder().decode(parts)), numbers);
  } catch ({ message }) {
    const reason = "its files are damaged or incomplete, or this browser is older than 2023";
    throw new Error(`${run} cannot be used: ${reason} (${message}).`);
  }
}

async function read(address) {
  const failed = { status: "no answer (opened from a disk, a folder needs a web server)" };
  const response = await fetch(address).catch(() => failed);
  if (response.ok) return response.arrayBuffer();
  throw new Error(`${address.slice(0, 200)} cannot be read: ${response.status}`);
}

// Files are compressed by gzip; some hosts unpack them on the way.
async function unpack(bytes) {
  const [first, second] = new Uint8Array(bytes);
  if (first !== 0x1f || second !== 0x8b) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
