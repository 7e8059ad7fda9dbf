/** A fetch `Response` as an answer of `node:http`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { textOf } from "./responses.ts";

/** Read of a body that nobody wanted, so that its sender sees the answer instead of a broken connection. */
const MOST_DRAINED_BYTES = 16 * 1_048_576;

/** Resolves when the answer has been handed to the socket. A response that is an error, or whose body breaks, breaks the connection. */
export async function writeResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  if (response.type === "error") {
    outgoing.destroy();
    return;
  }
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  const text = textOf(response);
  if (text !== undefined || response.body === null) outgoing.end(text);
  else await stream(response.body, outgoing);
  drain(outgoing.req);
}

async function stream(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  // An event stream may have nothing to say for long: its reader must see at once that it is open.
  outgoing.flushHeaders();
  const reader = body.getReader();
  outgoing.once("close", () => void reader.cancel().catch(() => {}));
  let flushed = Promise.resolve();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const { value } = next;
      flushed = new Promise((resolve) => outgoing.write(value, () => resolve()));
      if (outgoing.writableNeedDrain) await drainedOrClosed(outgoing);
    }
    outgoing.end();
  } catch {
    // Cut short (a fault): what came before still goes out.
    await flushed;
    outgoing.destroy();
  }
}

/** An event stream waits often and ends late: what listens for the one that does not come is taken off. */
function drainedOrClosed(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off("drain", done).off("close", done);
      resolve();
    };
    outgoing.on("drain", done).on("close", done);
  });
}

function drain(incoming: IncomingMessage): void {
  if (incoming.complete) return;
  let left = MOST_DRAINED_BYTES;
  incoming.on("data", (chunk: Buffer) => {
    left -= chunk.byteLength;
    if (left < 0) incoming.destroy();
  });
}
