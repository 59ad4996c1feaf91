"use strict";
// Requests to the server that this page comes from.

const isServer = true;

// The answer to a body: a form, or fields, which are sent as JSON.
async function request(path, body, signal) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };
  const options = { method: body ? "POST" : "GET", headers, body, signal };
  if (body && !(body instanceof FormData)) {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options).catch(() => {
    signal?.throwIfAborted();
    throw new Error("The server does not answer.");
  });
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  signal?.throwIfAborted();
  if (response.ok) return answer;
  const { status } = response;
  const seconds = Number(response.headers.get("Retry-After"));
  throw Object.assign(new Error(answer.error), { status, seconds });
}
