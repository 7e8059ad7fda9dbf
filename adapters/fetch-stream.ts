/** A stream of the inspector as the body of a `Response`. */
import { endStream } from "./end-stream.ts";

/**
 * Asks for a chunk when the host does. The stream is ended when the host cancels the body, or `signal` aborts; `gone` is told
 * of the former. A stream that fails breaks the body off: nobody shall take what came of it for all of it.
 */
export function bodyOf(
  chunks: AsyncIterable<string>,
  { signal, gone }: { readonly signal: AbortSignal; gone(): void },
): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  signal.addEventListener("abort", () => endStream(iterator));
  if (signal.aborted) endStream(iterator);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next().catch(() => {
          // Its own message may hold anything.
          throw new Error("The inspector's stream failed.");
        });
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      cancel: () => gone(),
    },
    // Nothing is asked for ahead.
    { highWaterMark: 0 },
  );
}
