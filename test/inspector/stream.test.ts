/** The live stream, from its first line to its last, on the inspector's own clock. */
import { describe, expect, it } from "vitest";
import { type InboxOperator, StoreError } from "../../src/index.ts";
import {
  createInspector,
  type Grant,
  type Inspector,
  type InspectorRequest,
  type StreamEvent,
} from "../../src/inspector/index.ts";
import { type Bench, deferred, type Faults, memoryBench, sqliteBench, until } from "../receiver/bench.ts";
import { outbound } from "../receiver/events.ts";
import { mounted, POST_HEADERS } from "./support/mounted.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const ORIGIN = "https://ops.example.com";
const HEADERS = { host: "ops.example.com" };
const OVERVIEW = { kind: "overview", overview: { access: "read", by: "ann" } };

interface Stream {
  readonly status: number;
  /** What came so far. */
  readonly events: StreamEvent[];
  readonly comments: () => number;
  readonly hasEnded: boolean;
  /** As when the browser's tab is closed. */
  leave(): void;
  /** As adapters end what they send. */
  stop(): Promise<unknown>;
}

/** On whatever store. */
interface AnyBench extends Pick<Bench<never>, "clock" | "logger" | "deliver"> {
  readonly receiver: { readonly inbox: InboxOperator };
  readonly store: { readonly faults: Faults };
}

/** An inspector on its own clock, with the right that each asking gets. */
function sceneOf(
  authorize: () => Grant | Promise<Grant> = () => ({ access: "read", by: "ann" }),
  bench: AnyBench = memoryBench(),
) {
  const { receiver, clock, logger } = bench;
  let asked = 0;
  const counted = () => {
    asked += 1;
    return authorize();
  };
  const inspector = createInspector<never>({
    ...{ inbox: receiver.inbox, authorize: counted, origins: [ORIGIN], clock, logger },
  });
  const open = async (): Promise<Stream> => {
    const leaving = new AbortController();
    const answer = await inspector.handle(requestOf(leaving.signal));
    return reading(answer.status, answer.body, leaving);
  };
  return { ...bench, inspector, open, asked: () => asked };
}

function requestOf(signal: AbortSignal, headers = HEADERS): InspectorRequest<never> {
  const url = "/inspector/api/stream";
  const native = null as never;
  return { method: "GET", url, headers, native, signal, readJson: async () => ({ ok: false, reason: "empty" }) };
}

function reading(status: number, body: unknown, leaving: AbortController): Stream {
  const chunks: string[] = [];
  const events: StreamEvent[] = [];
  const iterator = typeof body === "string" ? null : (body as AsyncIterable<string>)[Symbol.asyncIterator]();
  const stream = {
    ...{ status, events, hasEnded: false },
    comments: () => chunks.filter((chunk) => chunk === ":\n\n").length,
    leave: () => leaving.abort(),
    stop: async () => iterator?.return?.(),
  };
  void (async () => {
    for (let chunk = await iterator?.next(); chunk?.done === false; chunk = await iterator?.next()) {
      chunks.push(chunk.value);
      const data = /^data: (.+)\n\n$/.exec(chunk.value)?.[1];
      if (data !== undefined) events.push(JSON.parse(data));
    }
    stream.hasEnded = true;
  })();
  return stream;
}

describe("GET api/stream", () => {
  it("tells an overview at once, and then one a second", async () => {
    const { open, clock } = sceneOf();
    const stream = await open();
    await clock.advance(0);
    expect(stream.events).toMatchObject([{ ...OVERVIEW, changed: 1, sample: { at: clock.now() } }]);
    await clock.advance(5 * SECOND);
    expect(stream.events).toHaveLength(6);
    expect(stream.comments()).toBe(1);
  });

  it("comes over HTTP as server-sent events, and ends when the browser goes", async () => {
    const { receiver, logger } = memoryBench();
    let watching: () => Promise<number> = async () => -1;
    const server = await mounted((origin) => {
      const inspector = createInspector<never>({
        ...{ inbox: receiver.inbox, authorize: () => "read", origins: [origin], logger },
      });
      watching = () => streamsOf(inspector, { host: new URL(origin).host });
      return inspector;
    });
    const leaving = new AbortController();
    const response = await fetch(`${server.origin}/inspector/api/stream`, { signal: leaving.signal });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-store, no-transform");
    expect(response.headers.get("x-accel-buffering")).toBe("no");
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("data: ")) text += (await reader.read()).value;
    expect(text).toMatch(/^:\n\ndata: \{"kind":"overview",.*\}\n\n$/);
    expect(await watching()).toBe(1);
    leaving.abort();
    await until(async () => (await watching()) === 0);
  });

  it("tells soon what was done in the inspector", async () => {
    const { open, clock, inspector, deliver } = sceneOf(() => "act", sqliteBench());
    await deliver(outbound("queued"));
    const stream = await open();
    await clock.advance(300);
    expect(stream.events).toMatchObject([{ changed: 1, sample: { pending: 1 } }]);
    const url = "/inspector/api/events/1/discard";
    const asked = requestOf(new AbortController().signal, { ...HEADERS, ...POST_HEADERS });
    expect(await inspector.handle({ ...asked, method: "POST", url })).toMatchObject({ status: 200 });
    await clock.advance(0);
    expect(stream.events).toMatchObject([{ changed: 1 }, { changed: 2, sample: { pending: 0 } }]);
  });

  it("tells soon that somebody was shown numbers and texts, which is in the audit", async () => {
    const { open, clock, inspector, deliver } = sceneOf(() => "reveal");
    await deliver(outbound("queued"));
    const stream = await open();
    await clock.advance(300);
    const url = "/inspector/api/messages/1/reveal";
    const asked = requestOf(new AbortController().signal, { ...HEADERS, ...POST_HEADERS });
    expect(await inspector.handle({ ...asked, method: "POST", url })).toMatchObject({ status: 200 });
    await clock.advance(1);
    expect(stream.events).toMatchObject([{ changed: 1 }, { changed: 2 }]);
  });

  it("keeps the connection open with a comment while the inbox cannot be read", async () => {
    const { open, clock, store } = sceneOf();
    store.faults.reads = new StoreError("store_unavailable", "It is away.");
    const stream = await open();
    await clock.advance(14 * SECOND);
    expect(stream.comments()).toBe(1);
    await clock.advance(SECOND);
    expect(stream.comments()).toBe(2);
    await clock.advance(15 * SECOND);
    expect(stream.comments()).toBe(3);
    store.faults.reads = null;
    await clock.advance(SECOND);
    expect(stream.events).toMatchObject([OVERVIEW]);
  });

  it("asks every minute whether it may go on, and tells the right of now", async () => {
    let grant: Grant = { access: "read", by: "ann" };
    const { open, clock, asked } = sceneOf(() => grant);
    const stream = await open();
    await clock.advance(59 * SECOND);
    expect(asked()).toBe(1);
    grant = { access: "act", by: "ann" };
    await clock.advance(SECOND);
    expect(asked()).toBe(2);
    expect(stream.events.at(-1)).toMatchObject({ overview: { access: "act", by: "ann" } });
    await clock.advance(2 * MINUTE);
    expect(asked()).toBe(4);
  });

  it.each([
    ["a denial", () => false as const],
    [
      "a throw",
      () => {
        throw new Error("The session store is away.");
      },
    ],
    ["a rejection", () => Promise.reject(new Error("The session store is away."))],
    ["an answer that is none", () => "admin" as never],
  ])("ends within a minute of %s", async (_what, answer) => {
    let now: () => Grant | Promise<Grant> = () => "read";
    const { open, clock, inspector } = sceneOf(() => now());
    const stream = await open();
    now = answer;
    await clock.advance(59 * SECOND);
    expect(stream.hasEnded).toBe(false);
    await clock.advance(SECOND);
    expect(stream.events.at(-1)).toEqual({ kind: "end", reason: "unauthorized" });
    expect(stream.hasEnded).toBe(true);
    now = () => "read";
    expect(await streamsOf(inspector)).toBe(0);
    const told = stream.events.length;
    await clock.advance(MINUTE);
    expect(stream.events).toHaveLength(told);
  });

  it("ends for a lost right also while the inbox cannot be read", async () => {
    let grant: Grant = "read";
    const { open, clock, store } = sceneOf(() => grant);
    const stream = await open();
    store.faults.reads = new StoreError("store_unavailable", "It is away.");
    grant = false;
    await clock.advance(MINUTE);
    expect(stream.events.at(-1)).toEqual({ kind: "end", reason: "unauthorized" });
  });

  it("tells nothing while it is asked whether it may go on", async () => {
    const answer = deferred<Grant>();
    let now: () => Grant | Promise<Grant> = () => "read";
    const { open, clock } = sceneOf(() => now());
    const stream = await open();
    now = () => answer.promise;
    await clock.advance(MINUTE);
    const told = stream.events.length;
    await clock.advance(10 * SECOND);
    expect(stream.events).toHaveLength(told);
    answer.resolve("read");
    await clock.advance(SECOND);
    expect(stream.events.length).toBeGreaterThan(told);
  });

  it("ends when the tab is closed while it is asked whether it may go on", async () => {
    let now: () => Grant | Promise<Grant> = () => "read";
    const { open, clock, inspector } = sceneOf(() => now());
    const stream = await open();
    now = () => new Promise(() => {});
    await clock.advance(MINUTE + SECOND);
    stream.leave();
    await clock.advance(0);
    expect(stream.hasEnded).toBe(true);
    now = () => "read";
    expect(await streamsOf(inspector)).toBe(0);
  });

  it.each(["leave", "stop"] as const)("no longer watches after %s()", async (way) => {
    const { open, clock, inspector } = sceneOf();
    const stream = await open();
    await clock.advance(SECOND);
    expect(await streamsOf(inspector)).toBe(1);
    await stream[way]();
    await clock.advance(0);
    expect(stream.hasEnded).toBe(true);
    expect(await streamsOf(inspector)).toBe(0);
  });

  it("no longer watches when nobody ever read it and the tab is closed", async () => {
    const { inspector } = sceneOf();
    const leaving = new AbortController();
    await inspector.handle(requestOf(leaving.signal));
    expect(await streamsOf(inspector)).toBe(1);
    leaving.abort();
    expect(await streamsOf(inspector)).toBe(0);
  });

  it("is given to 20 at once, and to another when one of them leaves", async () => {
    const { open, clock, inspector } = sceneOf();
    const streams = await Promise.all(Array.from({ length: 20 }, open));
    expect(streams.map(({ status }) => status)).toEqual(Array(20).fill(200));
    const answer = await inspector.handle(requestOf(new AbortController().signal));
    expect(answer).toMatchObject({ status: 503, body: expect.stringContaining('"busy"') });
    streams[7]?.leave();
    await clock.advance(0);
    expect(await open()).toMatchObject({ status: 200 });
  });

  it("ends with a word when the inspector is closed, and is not begun again", async () => {
    const { open, clock, inspector } = sceneOf();
    const stream = await open();
    await clock.advance(SECOND);
    inspector.close();
    inspector.close();
    await clock.advance(0);
    expect(stream.events.at(-1)).toEqual({ kind: "end", reason: "closing" });
    expect(stream.hasEnded).toBe(true);
    expect(await open()).toMatchObject({ status: 503 });
  });
});

/** How many are watching, by how many more may. */
async function streamsOf(inspector: Inspector<never>, headers = HEADERS): Promise<number> {
  const leaving = new AbortController();
  let free = 0;
  while ((await inspector.handle(requestOf(leaving.signal, headers))).status === 200) free += 1;
  leaving.abort();
  return 20 - free;
}
