// The worker: loads the runs, and answers the requests of the page one after the other.

const translators = new Map(); // name of a run -> promise of its translator
const cancelled = new Set(); // numbers of requests whose answer nobody waits for
let queue = Promise.resolve();

onmessage = ({ data: { runs, id, path, body, cancelled: number } }) => {
  if (runs) {
    for (const run of runs) queue = queue.then(() => translators.set(run.name, load(run)).get(run.name)).catch(() => {});
  } else if (number) {
    cancelled.add(number);
  } else {
    queue = queue.then(() => answer(id, path, body));
  }
};

async function answer(id, path, body) {
  // Lets messages come in between; a request that was cancelled ends here.
  const pause = async () => {
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
  cancelled.delete(id);
}

async function load(run) {
  postMessage({ progress: `Loading ${run.name}…` });
  try {
    await startKernel();
    const [model, weights] = await Promise.all([run.model, run.weights].map(read));
    return new Translator(JSON.parse(new TextDecoder().decode(model)), weights);
  } finally {
    postMessage({ progress: "" });
  }
}

// The bytes of a file that is compressed by gzip; some hosts unpack it on the way.
async function read(address) {
  const file = address.startsWith("data:") ? "the page" : address;
  const response = await fetch(address).catch(() => ({ statusText: "a folder needs a web server; a single HTML file does not" }));
  if (!response.ok) throw new Error(`${file} cannot be read: ${response.status ?? ""} ${response.statusText}`);
  const bytes = await response.arrayBuffer();
  const [first, second] = new Uint8Array(bytes);
  if (first !== 0x1f || second !== 0x8b) return bytes;
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
