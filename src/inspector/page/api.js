/** Asks the inspector's JSON API. Paths are relative to where it is mounted, which this file's own address tells. */

const MOUNT = new URL("../", import.meta.url);

/** An answer from status 400 on, or none at all: then the status is 0 and the code `unreachable`. */
export class ApiError extends Error {
  /** @param {{ status: number, code: string, message: string }} answer `code` is that of the API, or why an act was refused. */
  constructor({ status, code, message }) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
  }
}

/**
 * @template T
 * @param {string} path such as `api/messages/7`
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function get(path, signal) {
  return (await ask(path, { signal })).json();
}

/**
 * @template T
 * @param {string} path
 * @param {object} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function post(path, body, signal) {
  return (await ask(path, { body, signal })).json();
}

/**
 * Reads an answer of one JSON value a line, and tells each as it comes.
 *
 * @template T
 * @param {string} path
 * @param {object} body
 * @param {(line: T) => void} onLine
 * @param {AbortSignal} [signal]
 */
export async function lines(path, body, onLine, signal) {
  const answer = await ask(path, { body, signal });
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunksOf(answer)) {
    const whole = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = whole.pop() ?? "";
    for (const line of whole) if (line !== "") onLine(JSON.parse(line));
  }
  if (rest !== "") onLine(JSON.parse(rest));
}

/** Saves an answer as a file. @param {string} path @param {object} body @param {string} name of the file */
export async function download(path, body, name) {
  const url = URL.createObjectURL(await (await ask(path, { body })).blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** @param {string} path @returns {string} for what asks by itself, as an EventSource does */
export function addressOf(path) {
  return new URL(path, MOUNT).href;
}

/** @param {string} path @param {{ body?: object, signal?: AbortSignal | undefined }} request @returns {Promise<Response>} */
async function ask(path, { body, signal }) {
  /** @type {Record<string, string>} */
  const headers = { "x-oncehook-inspector": "1", accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  const init = { method, headers, body: body && JSON.stringify(body), signal: signal ?? null };
  const answer = await fetch(new URL(path, MOUNT), init).catch(unreachable);
  if (!answer.ok) throw await refusalOf(answer);
  return answer;
}

/** @param {unknown} error @returns {never} */
function unreachable(error) {
  if (error instanceof Error && error.name === "AbortError") throw error;
  throw new ApiError({ status: 0, code: "unreachable", message: "The inspector does not answer." });
}

/** @param {Response} answer @returns {Promise<ApiError>} */
async function refusalOf(answer) {
  const { status } = answer;
  const said = await answer.json().catch(() => ({}));
  const code = said?.error ?? said?.reason ?? "unknown";
  return new ApiError({ status, code, message: said?.message ?? `The inspector answered with status ${status}.` });
}

/** An answer's body cannot be iterated in every browser. @param {Response} answer @returns {AsyncGenerator<Uint8Array>} */
async function* chunksOf(answer) {
  const reader = answer.body?.getReader();
  for (;;) {
    const read = await reader?.read();
    if (read === undefined || read.done) return;
    yield read.value;
  }
}
