/** Asks the inspector's JSON API. Paths are relative to where it is mounted, which this file's own address tells. */

const MOUNT = new URL("../", import.meta.url);

/** An answer from status 400 on; none at all has status 0. `code` is that of the API, or why an act was refused. */
export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** @template T @param {string} path @param {AbortSignal} [signal] @returns {Promise<T>} */
export async function get(path, signal) {
  return (await ask(path, undefined, signal)).json();
}

/** @template T @param {string} path @param {object} body @param {AbortSignal} [signal] @returns {Promise<T>} */
export async function post(path, body, signal) {
  return (await ask(path, body, signal)).json();
}

/** Reads one JSON value a line. @template T @param {string} path @param {object} body @param {(line: T) => void} onLine @param {AbortSignal} [signal] */
export async function lines(path, body, onLine, signal) {
  await read(path, body, (line) => line && onLine(JSON.parse(line)), signal);
}

/** Tells each line of an answer as it comes. @param {string} path @param {object | undefined} body @param {(line: string) => void} onLine @param {AbortSignal} [signal] */
export async function read(path, body, onLine, signal) {
  const reader = (await ask(path, body, signal)).body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    const whole = (rest + part.value).split("\n");
    rest = whole.pop() ?? "";
    whole.forEach(onLine);
  }
  onLine(rest);
}

/** Saves an answer as a file. @param {string} path @param {object} body @param {string} name */
export async function download(path, body, name) {
  const href = URL.createObjectURL(await (await ask(path, body)).blob());
  Object.assign(document.createElement("a"), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** @param {string} path @param {object} [body] @param {AbortSignal} [signal] */
async function ask(path, body, signal) {
  const headers = { "x-oncehook-inspector": "1", "content-type": "application/json" };
  const init = { method: body ? "POST" : "GET", headers, body: JSON.stringify(body), signal: signal ?? null };
  const answer = await fetch(new URL(path, MOUNT), init).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The inspector does not answer.");
  });
  // What stands before the inspector may answer with a page to sign in, and with 200.
  if (answer.ok && !answer.headers.get("content-type")?.includes("html")) return answer;
  const { error, reason, message } = await answer.json().catch(() => ({}));
  const other = answer.ok
    ? "Something else answers in the inspector's place: sign in again."
    : `The inspector answered with ${answer.status}.`;
  throw new ApiError(answer.status, error ?? reason, message ?? other);
}
