/** Calls the inspector's JSON API. Paths are relative to the place where the inspector is mounted. */

/** This file is served from `assets/` below that place. */
const MOUNT = new URL("../", import.meta.url);

/** An answer with a status from 400 on, or no answer at all: then the status is 0. */
export class ApiFailure extends Error {
  readonly status: number;
  /** The API's error code, or the reason why an act was refused. */
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, undefined, signal)).json();
}

export async function post<T>(path: string, body: object, signal?: AbortSignal): Promise<T> {
  return (await request(path, body, signal)).json();
}

/** Passes each line of a streamed answer to `onLine` as it arrives. */
export async function readLines(
  path: string,
  body: object | undefined,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const answer = await request(path, body, signal);
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(onLine);
  }
  onLine(rest);
}

/** Saves an answer as a file. */
export async function download(path: string, body: object, name: string): Promise<void> {
  const answer = await request(path, body);
  const url = URL.createObjectURL(await answer.blob());
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A POST if there is a body. */
async function request(path: string, body?: object, signal?: AbortSignal): Promise<Response> {
  const init: RequestInit = {
    method: body === undefined ? "GET" : "POST",
    headers: { "x-oncehook-inspector": "1", "content-type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  };
  const answer = await fetch(new URL(path, MOUNT), init).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiFailure(0, "unreachable", "The inspector does not answer.");
  });
  // A proxy in front of the inspector may answer with a sign-in page, and with status 200.
  const isPage = answer.headers.get("content-type")?.includes("html") ?? false;
  if (answer.ok && !isPage) return answer;
  throw await failureOf(answer);
}

async function failureOf(answer: Response): Promise<ApiFailure> {
  const { error, reason, message }: { error?: string; reason?: string; message?: string } = await answer
    .json()
    .catch(() => ({}));
  const fallback = answer.ok
    ? "The answer did not come from the inspector: sign in again."
    : `The inspector answered with ${answer.status}.`;
  return new ApiFailure(answer.status, error ?? reason ?? "", message ?? fallback);
}
