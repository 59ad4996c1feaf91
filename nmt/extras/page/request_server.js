"use strict";
// Requests to the server that this page comes from.

const isServer = true;

// The answer to a body: a form, or fields, which are sent as JSON.
async function request(path, body, signal) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };
  const isForm = body instanceof FormData;
  if (body && !isForm) headers["Content-Type"] = "application/json";
  const options = { method: body ? "POST" : "GET", headers, body: isForm ? body : body && JSON.stringify(body), signal };
  const response = await fetch(path, options).catch(() => {
    signal?.throwIfAborted();
    throw new Error("The server does not answer.");
  });
  const answer = await response.json().catch(() => ({ error: `${response.status} ${response.statusText}` }));
  signal?.throwIfAborted();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.error), { status: response.status, seconds: Number(response.headers.get("Retry-After")) });
}
