/** Cases of the inspector's adapter contract about streams, and about who went away. */
import type { InspectorAnswer } from "../inspector/http.ts";
import { bytesOf, type InspectorCase, textAnswer } from "./inspector-adapter-bench.ts";

const EVENTS = { "content-type": "text/event-stream", "cache-control": "no-store" };
const CHUNK = `data: ${"x".repeat(64 * 1_024)}\n\n`;
/** What sockets and frameworks may take in before nobody has read anything. */
const MOST_BUFFERED_CHUNKS = 400;

/** A stream that a case looks into. */
class Watched implements AsyncIterable<string> {
  made = 0;
  readonly ended: Promise<void>;
  #end: () => void = () => {};
  readonly #next: (made: number) => Promise<IteratorResult<string, undefined>>;

  constructor(next: (made: number) => Promise<IteratorResult<string, undefined>>) {
    this.#next = next;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  answer(): InspectorAnswer {
    return { status: 200, headers: EVENTS, body: this };
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return {
      next: () => {
        this.made += 1;
        return this.#next(this.made);
      },
      return: async () => {
        this.#end();
        return { done: true, value: undefined };
      },
    };
  }
}

const chunk = (value: string) => Promise.resolve({ done: false as const, value });
const end = () => Promise.resolve({ done: true as const, value: undefined });
const never = () => new Promise<never>(() => {});

/** A case with a stream of its own for each run. */
function streamCase(
  name: string,
  next: (made: number) => Promise<IteratorResult<string, undefined>>,
  run: (bench: Parameters<InspectorCase["run"]>[0], stream: Watched) => Promise<void>,
): InspectorCase {
  let stream = new Watched(next);
  return {
    name,
    make() {
      stream = new Watched(next);
      return () => stream.answer();
    },
    run: (bench) => run(bench, stream),
  };
}

/** Resolves when the inspector is told that whoever asked is gone. */
function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal === undefined || signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

export const streamCases: readonly InspectorCase[] = [
  streamCase(
    "sends a stream to its end",
    (made) => (made <= 3 ? chunk(`${made} é\n`) : end()),
    async ({ expect, ask }) => {
      const { status, headers, body } = await ask();
      expect([status, headers["content-type"], body]).toEqual([200, "text/event-stream", "1 é\n2 é\n3 é\n"]);
    },
  ),
  streamCase(
    "sends the headers before there is a chunk, and ends the stream of somebody who leaves then",
    never,
    async ({ connect, seen }, stream) => {
      const connection = await connect();
      connection.send(bytesOf({}));
      await connection.arrived("text/event-stream");
      connection.abort();
      await Promise.all([stream.ended, aborted(seen[0]?.signal)]);
    },
  ),
  streamCase(
    "sends a chunk as it comes, and ends the stream when whoever asked is gone",
    (made) => (made === 1 ? chunk("data: first\n\n") : never()),
    async ({ connect, seen }, stream) => {
      const connection = await connect();
      connection.send(bytesOf({}));
      await connection.arrived("data: first\n\n");
      connection.close();
      await Promise.all([stream.ended, aborted(seen[0]?.signal)]);
    },
  ),
  streamCase(
    "makes no more than is read",
    () => new Promise((resolve) => setImmediate(() => resolve({ done: false, value: CHUNK }))),
    async ({ expect, connect, ask }, stream) => {
      const connection = await connect();
      connection.pause();
      connection.send(bytesOf({}));
      let before = -1;
      // Other requests come and go meanwhile: time enough for a stream that does not wait.
      while (stream.made !== before && stream.made < MOST_BUFFERED_CHUNKS) {
        before = stream.made;
        for (let i = 0; i < 20; i++) await ask({ path: "/other" });
      }
      expect(stream.made < MOST_BUFFERED_CHUNKS, `${stream.made} chunks`).toBe(true);
      connection.abort();
      await stream.ended;
    },
  ),
  streamCase(
    "breaks off when the stream fails, for nobody to take it as complete",
    (made) => (made === 1 ? chunk("data: first\n\n") : Promise.reject(new Error("the disk is gone"))),
    async ({ expect, connect, ask }) => {
      const connection = await connect();
      connection.send(bytesOf({}));
      const answer = await connection.answer().catch(() => "broken off");
      expect(answer).toBe("broken off");
      expect((await ask({ path: "/other" })).status).toBe(200);
    },
  ),
  streamCase("does not begin a stream for HEAD", never, async ({ expect, ask }, stream) => {
    const { status, headers } = await ask({ method: "HEAD" });
    await stream.ended;
    expect([status, headers["content-type"], stream.made]).toEqual([200, "text/event-stream", 0]);
  }),
  {
    name: "tells the inspector when whoever asked is gone before the answer",
    make: () => async (request) => {
      if (request.method === "GET") await aborted(request.signal);
      return textAnswer(200, "answered");
    },
    async run({ expect, connect, ask, seen }) {
      const connection = await connect();
      connection.send(bytesOf({}));
      expect((await ask({ method: "OPTIONS" })).body).toBe("answered");
      connection.abort();
      await aborted(seen.find(({ method }) => method === "GET")?.signal);
      expect((await ask({ method: "OPTIONS" })).body).toBe("answered");
    },
  },
  {
    name: "does not take a complete answer for somebody who left",
    async run({ expect, ask, seen }) {
      await ask();
      await ask();
      expect(seen[0]?.signal.aborted).toBe(false);
    },
  },
];
