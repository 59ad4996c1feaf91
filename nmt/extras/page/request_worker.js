"use strict";
// Requests to a worker inside the page: there is no server.

const isServer = false;
const exportedRuns = JSON.parse(document.getElementById("runs").textContent);

const script = document.getElementById("worker").textContent;
const worker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
const progress = document.getElementById("progress");
const tell = (text) => (progress.textContent = text);
worker.onerror = ({ message }) =>
  tell(`This browser cannot run the page (those since 2023 can): ${message}`);
// A worker has no address of its own: it gets whole ones.
const whole = (address) =>
  address.startsWith("data:") ? address : new URL(address, document.baseURI).href;
for (const { name, model, weights } of exportedRuns) {
  const files = { model: whole(model), weights: whole(weights) };
  request("/load", { run: name, ...files }).catch(({ message }) => tell(message));
}

function request(path, body, signal) {
  if (path === "/runs") return Promise.resolve(exportedRuns);
  const { port1, port2 } = new MessageChannel();
  worker.postMessage({ path, body }, [port2]);
  return new Promise((resolve, reject) => {
    port1.onmessage = ({ data }) => {
      tell(data.progress ?? "");
      if (data.answer) resolve(data.answer);
      if (data.error) reject(new Error(data.error));
    };
    signal?.addEventListener("abort", () => {
      port1.postMessage("cancelled");
      reject(signal.reason);
    });
  });
}
