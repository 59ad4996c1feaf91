// The worker: loads the runs, and answers the requests of the page one after the other.

const translators = new Map(); // name of a run -> promise of its translator
const cancelled = new Set(); // numbers of requests whose answer nobody waits for
const PATIENCE = 1000; // milliseconds until the page says that it is at work
let queue = Promise.resolve();

onmessage = ({ data: { runs, id, path, body, cancelled: number } }) => {
  if (runs) {
    for (const run of runs) queue = queue.then(() => translators.set(run.name, load(run)).get(run.name)).catch(tell);
  } else if (number) {
    cancelled.add(number);
  } else {
    queue = queue.then(() => answer(id, path, body));
  }
};

async function answer(id, path, body) {
  tell({ message: "" });
  const start = performance.now();
  // Lets messages come in between; a request that was cancelled ends here.
  const pause = async () => {
    if (performance.now() - start > PATIENCE) tell({ message: "Translating…" });
    await new Promise((resolve) => setTimeout(resolve));
    if (cancelled.has(id)) throw new Error("cancelled");
  };
  try {
    const translator = await translators.get(body.run);
    await pause();
    postMessage({ id, answer: { run: body.run, ...(await ANSWERS[path](translator, body, pause)) } });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
  tell({ message: "" });
  cancelled.delete(id);
}

function tell({ message }) {
  postMessage({ progress: message });
}

async function load(run) {
  tell({ message: `Loading ${run.name}…` });
  const files = await Promise.all([run.model, run.weights].map(read));
  try {
    new RegExp("", "v"); // old browsers fail here, not later
    await startKernel();
    const [model, weights] = await Promise.all(files.map(unpack));
    return new Translator(JSON.parse(new TextDecoder().decode(model)), weights);
  } catch (error) {
    throw new Error(`${run.name} cannot be used: its files are damaged or incomplete, or this browser is older than 2023 (${error.message}).`);
  } finally {
    tell({ message: "" });
  }
}

async function read(address) {
  const response = await fetch(address).catch(() => ({ status: "no answer", statusText: "(opened from a disk, a folder needs a web server)" }));
  if (!response.ok) throw new Error(`${address.slice(0, 200)} cannot be read: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

// Files are compressed by gzip; some hosts unpack them on the way.
async function unpack(bytes) {
  const [first, second] = new Uint8Array(bytes);
  if (first !== 0x1f || second !== 0x8b) return bytes;
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
