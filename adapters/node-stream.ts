/** Writes a stream to a Node response, no faster than it is read. */
import type { ServerResponse } from "node:http";
import { endStream } from "./end-stream.ts";
import { boundTaking } from "./node-answer.ts";
import { breakOff, breakOffUntaken, isGone } from "./node-ending.ts";

/**
 * Writes chunk by chunk, and ends the stream when whoever asked is gone. Never rejects. A stream that fails breaks the
 * response off: nobody shall take what came of it for all of it.
 */
export async function sendStream(chunks: AsyncIterable<string>, response: ServerResponse): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]();
  response.once("close", () => endStream(iterator));
  try {
    for (;;) {
      const { done, value } = await iterator.next();
      if (isGone(response)) return;
      if (done) {
        response.end();
        boundTaking(response);
        return;
      }
      if (!response.write(value)) await drained(response);
    }
  } catch {
    breakOff(response);
  }
}

/** Resolves when more can be written, or nothing any more: also because nothing was taken for too long. */
function drained(response: ServerResponse): Promise<void> {
  const leave = breakOffUntaken(response);
  return new Promise((resolve) => {
    const settle = () => {
      leave();
      response.off("drain", settle);
      response.off("close", settle);
      resolve();
    };
    response.on("drain", settle);
    response.on("close", settle);
  });
}
