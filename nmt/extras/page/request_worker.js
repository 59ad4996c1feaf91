"use strict";
// Requests to a worker inside the page: there is no server.

const isServer = false;
const exportedRuns = JSON.parse(document.getElementById("runs").textContent);

const script = document.getElementById("worker").textContent;
const worker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
const progress = document.getElementById("progress");
worker.onmessage = ({ data }) => {
  progress.textContent = data;
};
worker.onerror = ({ message }) => {
  progress.textContent = `This browser cannot run the page: ${message}`;
};
// A worker has no address of its own: it gets whole ones.
const whole = (address) =>
  address.startsWith("data:") ? address : new URL(address, document.baseURI).href;
for (const run of exportedRuns) {
  worker.postMessage({ ...run, model: whole(run.model), weights: whole(run.weights) });
}

function request(path, body, signal) {
  if (path === "/runs") return Promise.resolve(exportedRuns);
  const { port1, port2 } = new MessageChannel();
  worker.postMessage({ path, body }, [port2]);
  return new Promise((resolve, reject) => {
    port1.onmessage = ({ data: { answer, error } }) =>
      answer ? resolve(answer) : reject(new Error(error));
    signal?.addEventListener("abort", () => {
      port1.postMessage("cancelled");
      reject(signal.reason);
    });
  });
}
