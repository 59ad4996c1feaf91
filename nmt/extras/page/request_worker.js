"use strict";
// Requests to a worker inside the page: there is no server.

const isServer = false;

const request = (() => {
  const runs = JSON.parse(document.getElementById("runs").textContent);
  const waiting = new Map(); // number of a request -> what to call with the answer
  const script = new Blob([document.getElementById("worker").textContent], { type: "text/javascript" });
  const worker = new Worker(URL.createObjectURL(script));
  worker.onmessage = ({ data: { id, answer, error, progress } }) => {
    if (progress !== undefined) return showProgress(progress);
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (error === undefined) resolve?.(answer);
    else reject?.(new Error(error));
  };
  worker.onerror = ({ message }) => showProgress(`This browser cannot run the page: ${message}`);
  // A worker has no address of its own: it gets whole ones.
  const whole = (address) => (address.startsWith("data:") ? address : new URL(address, document.baseURI).href);
  worker.postMessage({ runs: runs.map((run) => ({ ...run, model: whole(run.model), weights: whole(run.weights) })) });
  let count = 0;

  return (path, body, signal) => {
    if (path === "/runs") return Promise.resolve(runs);
    const id = ++count;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      worker.postMessage({ id, path, body });
      signal?.addEventListener("abort", () => {
        if (!waiting.delete(id)) return;
        worker.postMessage({ cancelled: id });
        reject(signal.reason);
      });
    });
  };
})();
