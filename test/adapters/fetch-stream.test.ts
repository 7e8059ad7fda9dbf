/** A stream of the inspector as the body of a `Response`. */
import { describe, expect, it } from "vitest";
import { bodyOf } from "../../adapters/fetch-inspector.ts";

const gone = () => {};

describe("bodyOf()", () => {
  it("ends at once a stream whose reader was gone before it began", () => {
    let endings = 0;
    const iterator: AsyncIterator<string> = {
      next: () => new Promise<never>(() => {}),
      async return() {
        endings += 1;
        return { done: true, value: undefined };
      },
    };
    bodyOf({ [Symbol.asyncIterator]: () => iterator }, { signal: AbortSignal.abort(), gone });
    expect(endings).toBe(1);
  });

  it("fails with a message of its own, for that of the stream may hold anything", async () => {
    const chunks = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("row of +15550100002")) }),
    };
    const body = new Response(bodyOf(chunks, { signal: new AbortController().signal, gone }));
    await expect(body.text()).rejects.toThrow(/^The inspector's stream failed\.$/);
  });
});
