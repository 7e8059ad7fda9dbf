/** The text of an answer, up to a bound: a service gone wrong must not fill the memory. */

/** Far more than any answer of the service, in bytes: some 100,000 numbers. */
const LONGEST_BODY = 32 * 1024 * 1024;

/** The whole text, or null when it is longer than 32 MiB; no more is read of it then. */
export function textOf(response: Response): Promise<string | null> {
  const { headers } = response;
  const length = Number(headers.get("content-length") ?? Number.NaN);
  // HTTP holds the body to its length, so it need not be counted; of a compressed one the length says nothing.
  if (length <= LONGEST_BODY && !headers.has("content-encoding")) return response.text();
  const { body } = response;
  if (length > LONGEST_BODY) {
    dropped(body);
    return Promise.resolve(null);
  }
  // A stand-in for fetch may give a body of another kind, or none.
  return typeof body?.getReader === "function" ? counted(body.getReader()) : response.text();
}

async function counted(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > LONGEST_BODY) {
      dropped(reader);
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Ends the connection of a body that is not wanted; how that goes does not matter. */
function dropped(body: Pick<ReadableStream, "cancel"> | null): void {
  body?.cancel().catch(() => {});
}
