// The worker: loads the runs, and answers the requests of the page one after the other.

const PATIENCE = 1000; // milliseconds until the page says that it is at work
// By path, the name of an answer, and of the method of a translator that finds it.
const NAMES = {
  translate: "lines",
  alternatives: "alternatives",
  without: "losses",
  tree: "nodes",
};

const translators = new Map(); // name of a run -> promise of its translator
let queue = Promise.resolve();
let current; // the request that is being answered

// A message is a run, or a request with a port for its answer. Back go texts: what the page waits
// for.
onmessage = ({ data, ports: [port] }) => {
  queue = queue.then(() => (port ? answer(data, port) : add(data)));
};

function add(run) {
  const loaded = load(run);
  translators.set(run.name, loaded);
  return loaded.catch(({ message }) => postMessage(message));
}

async function answer({ path, body }, port) {
  const request = { start: performance.now(), isCancelled: false };
  port.onmessage = () => (request.isCancelled = true); // nobody waits for the answer
  current = request;
  postMessage("");
  try {
    const translator = await translators.get(body.run);
    await pause();
    const method = NAMES[path.slice(1)];
    port.postMessage({ answer: { run: body.run, [method]: await translator[method](body) } });
  } catch (error) {
    port.postMessage({ error: error.message });
  }
  postMessage("");
}

// To wait for between the parts of an answer: lets messages come in; ends a cancelled request.
async function pause() {
  if (performance.now() - current.start > PATIENCE) postMessage("Translating…");
  await new Promise((resolve) => setTimeout(resolve));
  if (current.isCancelled) throw new Error("cancelled");
}

async function load(run) {
  postMessage(`Loading ${run.name}…`);
  const files = await Promise.all([run.model, run.weights].map(read));
  try {
    new RegExp("", "v"); // old browsers fail here, not later
    await startKernel();
    const [model, weights] = await Promise.all(files.map(unpack));
    return new Translator(JSON.parse(new TextDecoder().decode(model)), weights);
  } catch ({ message }) {
    const reason = "its files are damaged or incomplete, or this browser is older than 2023";
    throw new Error(`${run.name} cannot be used: ${reason} (${message}).`);
  } finally {
    postMessage("");
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
