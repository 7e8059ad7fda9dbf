/** Order by position and by arrival, from signed requests to handlers, on every store. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { createReceiver, type InboxOperator, type InboxStore } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { defineSource, github, shopify, stripe } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock, fixtures, incomingOf, signedRequest, TEST_SECRETS } from "../../src/tools/testing/index.ts";
import { type Place, shuffledLanes } from "./shuffled-lanes.ts";

const folder = mkdtempSync(join(tmpdir(), "oncehook-order-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const sqlite = () => sqliteStore(join(folder, `${++files}.db`)) as unknown as InboxStore<never>;
const memory = () => memoryStore({ volatile: true }) as InboxStore<never>;
const common = { logger: silentLogger };

const SECOND = 1_760_000_000;

function stripeEvent(id: string, second: number, object: object = { id: "sub_1" }) {
  const event = { ...fixtures.stripe({ id }), created: SECOND + second, data: { object } };
  return incomingOf(signedRequest(event, { source: "stripe" }));
}

/** The order of each lane. */
const ordersOf = async ({ inbox }: { readonly inbox: Pick<InboxOperator, "findLanes"> }) =>
  (await inbox.findLanes()).items.map(({ key }) => key.order);

describe.each([
  ["memory", memory],
  ["SQLite", sqlite],
])("stripe() on %s", (_name, open) => {
  function receiving(options: { readonly lane?: null } = {}) {
    const source = stripe({ secrets: TEST_SECRETS.stripe, ...options });
    const receiver = createReceiver({ store: open(), source, ...common });
    onTestFinished(() => receiver.stop());
    const seen: string[] = [];
    receiver.onAny((event, ctx) => void seen.push(`${event.id} ${ctx.meta.lane}`));
    return { receiver, seen };
  }

  it("handles the events of one object by `created`, and an older one only in onLate", async () => {
    const { receiver, seen } = receiving();
    receiver.onLate((event, ctx) => void seen.push(`late ${event.id} ${ctx.outOfOrder}`));
    receiver.pause();
    for (const [id, second] of [["c", 3], ["a", 1], ["b", 2], ["b2", 2]] as const) await receiver.handle(stripeEvent(id, second)); // biome-ignore format: a table
    receiver.resume();
    await receiver.drain();
    await receiver.handle(stripeEvent("old", 0));
    await receiver.drain();
    await receiver.handle(stripeEvent("same", 3));
    await receiver.handle(stripeEvent("other", 0, { id: "sub_2" }));
    await receiver.drain();
    const inLane = (id: string) => `${id} sub_1`;
    expect(seen).toEqual([...["a", "b", "b2", "c"].map(inLane), "late old true", inLane("same"), "other sub_2"]);
    expect(await ordersOf(receiver)).toEqual(["position", "position"]);
  });

  it("handles an event without an object's id, or with lane: null, by itself", async () => {
    const { receiver, seen } = receiving();
    receiver.onLate(() => expect.fail("Nothing is late."));
    await receiver.handle(stripeEvent("balance", 0, { available: [] }));
    await receiver.drain();
    const alone = receiving({ lane: null });
    await alone.receiver.handle(stripeEvent("b", 2));
    await alone.receiver.handle(stripeEvent("a", 1));
    await alone.receiver.drain();
    expect([seen, alone.seen]).toEqual([["balance null"], ["b null", "a null"]]);
    expect([await ordersOf(receiver), await ordersOf(alone.receiver)]).toEqual([[null], [null, null]]);
  });

  it("has the same ctx.identity in a lane and by itself", async () => {
    const identities: string[] = [];
    for (const lane of [undefined, null]) {
      const { receiver } = receiving(lane === null ? { lane } : {});
      receiver.onAny((_event, ctx) => void identities.push(ctx.identity));
      if (lane === undefined) receiver.onLate(() => {});
      await receiver.handle(stripeEvent("a", 1));
      await receiver.drain();
    }
    expect(new Set(identities).size).toBe(1);
    expect(identities).toHaveLength(2);
  });

  it("takes onLate only if it has an order, and starts without one", async () => {
    const { receiver } = receiving();
    await receiver.start();
    const { receiver: alone } = receiving({ lane: null });
    expect(() => alone.onLate(() => {})).toThrow(/can be late/);
    expect(() => alone.onAny(() => {}, { late: "skip" })).toThrow(/can be late/);
  });
});

/** What the handlers of a process are. */
interface Registered {
  readonly on?: readonly string[];
  readonly skip?: readonly string[];
  readonly onLate?: true;
}

describe.each([
  ["memory", memory],
  ["SQLite", sqlite],
])("an event that comes after a later one, on %s", (_name, open) => {
  function receiving({ on = [], skip = [], onLate }: Registered, more: object = {}) {
    const logged: object[] = [];
    const logger = { ...silentLogger, warn: (fields: object) => void logged.push(fields) };
    const source = stripe({ secrets: TEST_SECRETS.stripe });
    const receiver = createReceiver({ store: open(), source, logger, ...more });
    onTestFinished(() => receiver.stop());
    const seen: string[] = [];
    if (on.length > 0) receiver.on(on, (event, ctx) => void seen.push(`${event.type}${ctx.late ? " late" : ""}`));
    if (skip.length > 0) receiver.on(skip, (event) => void seen.push(`${event.type} state`), { late: "skip" });
    if (onLate) receiver.onLate((event, ctx) => void seen.push(`${event.type} onLate ${ctx.late}`));
    const send = async (type: string, second: number, drains = true) => {
      const event = {
        ...fixtures.stripe({ id: `evt_${type}_${second}` }),
        type,
        created: SECOND + second,
        data: { object: { id: "in_1" } },
      };
      const answer = await receiver.handle(incomingOf(signedRequest(event, { source: "stripe" })));
      if (drains) await receiver.drain();
      return JSON.parse(`${answer.body}`).outcome as string;
    };
    const found = async () =>
      (await receiver.inbox.find({ order: "oldest" })).items.map(({ eventType, outcome, late }) => [
        eventType,
        outcome,
        late,
      ]);
    return { receiver, seen, send, found, logged };
  }

  it("is in its turn if no handler took the later one", async () => {
    const { seen, send, found } = receiving({ on: ["invoice.paid"] });
    await send("invoice.updated", 2);
    await send("invoice.paid", 1);
    expect(seen).toEqual(["invoice.paid"]);
    expect(await found()).toEqual([["invoice.updated", "unhandled", false], ["invoice.paid", "handled", false]]); // biome-ignore format: a table
  });

  it.each([
    [
      "goes to onLate alone, of any type",
      { on: ["paid", "updated"], onLate: true },
      ["updated", "paid onLate true"],
      "handled",
    ],
    ["goes to on() with ctx.late without onLate", { on: ["paid", "updated"] }, ["updated", "paid late"], "handled"],
    ["is skipped by a handler of states", { skip: ["paid", "updated"] }, ["updated state"], "unhandled"],
    [
      "goes to onLate though its type has no handler",
      { on: ["updated"], onLate: true },
      ["updated", "paid onLate true"],
      "handled",
    ],
  ] as const)("%s", async (_how, registered: Registered, expected, outcome) => {
    const { receiver, seen, send, found, logged } = receiving(registered);
    await send("updated", 2);
    await send("paid", 1);
    expect(seen).toEqual(expected);
    expect(await found()).toEqual([["updated", "handled", false], ["paid", outcome, true]]); // biome-ignore format: a table
    expect((await receiver.inbox.stats()).counters.late).toBe(1);
    const goesToOn = registered.on?.includes("paid") === true && registered.onLate === undefined;
    await send("paid", 0);
    const codes = logged.flatMap((fields) => ("code" in fields && fields.code === "late_event" ? [fields] : []));
    expect(codes).toEqual(goesToOn ? [{ code: "late_event", source: "stripe", eventType: "paid" }] : []);
  });

  it("is not late, nor marked, if no handler would have taken it in its turn", async () => {
    const { receiver, send, found } = receiving({ on: ["updated"] });
    await send("updated", 2);
    await send("noise", 1);
    expect(await found()).toEqual([["updated", "handled", false], ["noise", "unhandled", false]]); // biome-ignore format: a table
    expect((await receiver.inbox.stats()).counters).toMatchObject({ late: 0, unhandled: 1 });
  });

  it("ends at once with ack: handled, taken or not", async () => {
    const { send } = receiving({ on: ["updated"] }, { ack: "handled" });
    expect([await send("noise", 3, false), await send("updated", 2, false), await send("noise", 1, false)]).toEqual([
      "handled",
      "handled",
      "handled",
    ]);
  });
});

it("logs a late event once for each type of each entry", async () => {
  const logged: string[] = [];
  const warn = ({ code, source, eventType }: Readonly<Record<string, unknown>>) =>
    void (code === "late_event" && logged.push(`${source} ${eventType}`));
  const sources = { one: stripe({ secrets: TEST_SECRETS.stripe }), other: stripe({ secrets: TEST_SECRETS.stripe }) };
  const receiver = createReceiver({ store: memory(), sources, logger: { ...silentLogger, warn } });
  onTestFinished(() => receiver.stop());
  for (const name of ["one", "other"] as const) receiver.source(name).onAny(() => {});
  for (const [name, type, second] of [
    ["one", "a", 9],
    ["one", "a", 3],
    ["one", "a", 2],
    ["one", "b", 1],
    ["other", "a", 9],
    ["other", "a", 1],
  ] as const) {
    // biome-ignore format: a table
    const event = { ...fixtures.stripe({ id: `evt_${second}`, type }), created: SECOND + second };
    await receiver.source(name).handle(incomingOf(signedRequest(event, { source: "stripe" })));
    await receiver.drain();
  }
  expect(logged).toEqual(["one a", "one b", "other a"]);
});

it("decides in the process that claims an event what becomes of one that comes late", async () => {
  const path = join(folder, `${++files}.db`);
  const open = () => {
    const source = stripe({ secrets: TEST_SECRETS.stripe });
    const receiver = createReceiver({ store: sqliteStore(path), source, ...common });
    onTestFinished(() => receiver.stop());
    return receiver;
  };
  const [web, worker] = [open(), open()];
  const seen: string[] = [];
  worker.onAny((event) => void seen.push(event.id)).onLate((event) => void seen.push(`late ${event.id}`));
  for (const [id, second] of [
    ["new", 2],
    ["old", 1],
  ] as const) {
    // biome-ignore format: a table
    await web.handle(stripeEvent(id, second));
    await worker.drain();
  }
  expect(seen).toEqual(["new", "late old"]);
});

it("refuses holdBackMs where nothing is in order by position, and where the answer would wait for it", () => {
  expect(() => github({ secrets: TEST_SECRETS.github, holdBackMs: 1 })).toThrow(/holdBackMs/);
  expect(() => stripe({ secrets: TEST_SECRETS.stripe, holdBackMs: 60_001 })).toThrow(/60000|60,000/);
  const source = stripe({ secrets: TEST_SECRETS.stripe, holdBackMs: 1 });
  expect(() => createReceiver({ store: memory(), source, ...common })).toThrow(/ack/);
});

describe("holdBackMs", () => {
  function holding(holdBackMs: number) {
    const clock = createFakeClock();
    const source = stripe({
      secrets: TEST_SECRETS.stripe,
      holdBackMs,
      toleranceMs: { past: 86_400_000, future: 86_400_000 },
    });
    const store = sqlite();
    const receiver = createReceiver({ store, source, clock, ...common });
    onTestFinished(() => receiver.stop());
    const seen: string[] = [];
    receiver.onAny((event) => void seen.push(event.id)).onLate((event) => void seen.push(`late ${event.id}`));
    const send = async (id: string, second: number, object = "sub_1") => {
      const event = { ...fixtures.stripe({ id }), created: SECOND + second, data: { object: { id: object } } };
      await receiver.handle(incomingOf(signedRequest(event, { source: "stripe", timestamp: clock.now() })));
    };
    return { clock, store, receiver, seen, send };
  }

  it("waits in drain() for events that are held back, within its budget", async () => {
    const { clock, receiver, seen, send } = holding(2_000);
    await send("b", 2);
    const drained = receiver.drain({ budgetMs: 10_000 });
    await clock.advance(1_000);
    await send("a", 1);
    await clock.advance(1_000);
    expect(await drained).toEqual({ claimed: 2, complete: true });
    expect(seen).toEqual(["a", "b"]);
    await send("c", 3);
    const short = receiver.drain({ budgetMs: 500 });
    await clock.advance(500);
    expect(await short).toEqual({ claimed: 0, complete: false });
    expect(seen).toEqual(["a", "b"]);
  });

  it("is handled although it became due while the store looked", async () => {
    const { clock, store, receiver, seen, send } = holding(2_000);
    await send("a", 1);
    // Another process takes an event that is due a moment earlier.
    vi.spyOn(store, "nextDue").mockResolvedValueOnce(1_999);
    const drained = receiver.drain();
    await clock.advance(1_998);
    const step = store.step.bind(store);
    vi.spyOn(store, "step").mockImplementationOnce(async (turn) => {
      const result = await step(turn);
      await clock.advance(10);
      return result;
    });
    await clock.advance(1);
    expect(await drained).toEqual({ claimed: 1, complete: true });
    expect(seen).toEqual(["a"]);
  });

  it("is handled without a cron where another process has its lane when it is due", async () => {
    const clock = createFakeClock();
    const path = join(folder, `${++files}.db`);
    const seen: string[] = [];
    let letGo = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const processOf = (name: string) => {
      const source = stripe({ secrets: TEST_SECRETS.stripe, holdBackMs: 2_000, toleranceMs: { past: 86_400_000 } });
      const receiver = createReceiver({ store: sqliteStore(path), source, clock, ...common });
      onTestFinished(() => receiver.stop());
      receiver.onLate(() => expect.fail("Nothing is late."));
      receiver.onAny(async (event) => {
        if (event.id === "a") await held;
        seen.push(`${event.id} ${name}`);
      });
      return async (id: string, second: number) => {
        const event = { ...fixtures.stripe({ id }), created: SECOND + second, data: { object: { id: "sub_1" } } };
        await receiver.handle(incomingOf(signedRequest(event, { source: "stripe", timestamp: clock.now() })));
        return receiver.drain();
      };
    };
    const [first, second] = [processOf("first"), processOf("second")];
    const drains = [first("a", 1)];
    await clock.advance(1_500);
    drains.push(second("b", 2));
    await clock.advance(500);
    letGo();
    await expect.poll(() => seen).toEqual(["a first"]);
    await clock.advance(1_500);
    expect(await Promise.all(drains)).toEqual(Array(2).fill({ claimed: 1, complete: true }));
    expect(seen).toEqual(["a first", "b second"]);
  });

  it("asks the store a few times for each event, however many drains wait", async () => {
    const store = sqlite();
    const nextDue = vi.spyOn(store, "nextDue");
    // By the real clock, whose timers of one moment fire together.
    const source = stripe({ secrets: TEST_SECRETS.stripe, holdBackMs: 1_000 });
    const receiver = createReceiver({ store, source, ...common });
    onTestFinished(() => receiver.stop());
    const seen: string[] = [];
    receiver.onAny(({ id }) => void seen.push(id)).onLate(() => expect.fail("Nothing is late."));
    const drains: Promise<{ readonly complete: boolean }>[] = [];
    for (let index = 0; index < 100; index++) {
      await receiver.handle(stripeEvent(`${index}`, 0, { id: `sub_${index}` }));
      drains.push(receiver.drain());
      await sleep(5);
    }
    for (const { complete } of await Promise.all(drains)) expect(complete).toBe(true);
    expect(seen).toHaveLength(100);
    expect(nextDue.mock.calls.length).toBeLessThan(500);
  });

  it("is not waited for while the receiver is paused", async () => {
    const { clock, receiver, seen, send } = holding(2_000);
    await send("a", 1);
    const drained = receiver.drain();
    await clock.advance(500);
    receiver.pause();
    await clock.advance(1_600);
    expect(await drained).toEqual({ claimed: 0, complete: false });
    expect([await receiver.drain(), seen]).toEqual([{ claimed: 0, complete: false }, []]);
  });

  it("is ended by stop()", async () => {
    const { receiver, seen, send } = holding(60_000);
    await send("a", 1);
    const drained = receiver.drain();
    await new Promise((resolve) => setTimeout(resolve, 50));
    // Due now, for a drain that looks again.
    const [lane] = (await receiver.inbox.findLanes()).items;
    await receiver.inbox.releaseGap(lane!.id);
    await receiver.stop({ until: new Promise((resolve) => setTimeout(resolve, 50)) });
    expect(await drained).toEqual({ claimed: 0, complete: false });
    expect(seen).toEqual([]);
  });

  it("makes fewer events late, and none is handled after one of a higher position", async () => {
    const late: number[] = [];
    for (const holdBackMs of [0, 5_000]) {
      const { clock, receiver, seen, send } = holding(holdBackMs);
      await receiver.start();
      // Each comes up to four seconds before or after its turn.
      const shuffled = Array.from({ length: 60 }, (_, index) => index - (index % 5) + (4 - (index % 5)));
      for (const second of shuffled) {
        await send(`${second}`, second);
        await clock.advance(1_000);
      }
      await clock.advance(10_000);
      const inTurn = seen.filter((id) => !id.startsWith("late")).map(Number);
      expect(inTurn).toEqual(inTurn.toSorted((a, b) => a - b));
      expect(seen).toHaveLength(60);
      late.push(seen.length - inTurn.length);
    }
    expect(late).toEqual([48, 0]);
  });
});

describe("shuffled lanes in memory", () => shuffledLanes(placeInMemory));
describe("shuffled lanes on SQLite", () => shuffledLanes(placeOnSqlite));

/** It has no transaction to write in. It counts as durable here: otherwise an answer waits for the handler, and nothing can be held back. */
async function placeInMemory(): Promise<Place<never>> {
  const store = memory();
  const states = new Map<string, string>();
  return {
    store: { ...store, capabilities: { ...store.capabilities, durable: true } },
    write: (_ctx, object, state) => void states.set(object, state),
    read: async () => states,
  };
}

async function placeOnSqlite(): Promise<Place<SqliteDatabase>> {
  const path = join(folder, `${++files}.db`);
  const onOpen = (db: SqliteDatabase) => db.exec("create table if not exists state (object text primary key, id text)");
  return {
    store: sqliteStore(path, { onOpen }),
    write(ctx, object, state) {
      ctx.commit((db) => db.prepare("insert or replace into state values (?, ?)").run(object, state));
    },
    async read() {
      const db = new Database(path, { readonly: true });
      onTestFinished(() => void db.close());
      return new Map(db.prepare("select object, id from state").raw().all() as [string, string][]);
    },
  };
}

describe("lanes by arrival, and others", () => {
  it("handles those of one lane one at a time, as they came, where the application names the lane", async () => {
    const lane = (event: object) => `${(event as { ref?: string }).ref}`;
    const receiver = createReceiver({
      store: sqlite(),
      source: github({ secrets: TEST_SECRETS.github, lane }),
      ...common,
    });
    onTestFinished(() => receiver.stop());
    let running = 0;
    const seen: unknown[] = [];
    receiver.onAny(async (event) => {
      expect(++running).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      seen.push(event.after);
    });
    for (const after of ["c", "a", "b"])
      await receiver.handle(
        incomingOf(signedRequest({ ...fixtures.github({ id: after }), ref: "main", after }, { source: "github" })),
      );
    await receiver.drain();
    expect(seen).toEqual(["c", "a", "b"]);
  });

  it("quarantines an event whose lane or position is not what it must be", async () => {
    for (const wrong of [
      { at: 1.5 },
      { at: -1 },
      { at: 9e12 + 1 },
      { lane: "" },
      { lane: "x".repeat(513) },
      { lane: `xx${"€".repeat(433)}` },
    ]) {
      const acme = defineSource<{ id: string }>({
        preset: "acme",
        lastRetryMs: 0,
        verify: (_head, _body, [key]) =>
          key === undefined ? { ok: false, code: "no_key" } : { ok: true, key, signedAt: null },
        parse: () => ({ ok: true, event: { id: "1" } }),
        order: "position",
        place: ({ id }) => ({ type: "any", id, lane: "lane", at: 1, ...wrong }),
      });
      const receiver = createReceiver({
        store: memory(),
        source: acme({ secrets: "a secret of many characters" }),
        ...common,
      });
      onTestFinished(() => receiver.stop());
      const answer = await receiver.handle({
        method: "POST",
        headers: {},
        readBody: () => ({ ok: true, bytes: Buffer.from("{}") }),
      });
      expect(JSON.parse(answer.body)).toEqual({ outcome: "quarantined" });
    }
  });

  it("reports no conflict where the source reads the same event from other bytes, and one where it reads another", async () => {
    const acme = defineSource<{ id: string; at?: Date }>({
      preset: "acme",
      lastRetryMs: 0,
      keep: ["x-zone"],
      verify: (_head, _body, [key]) =>
        key === undefined ? { ok: false, code: "no_key" } : { ok: true, key, signedAt: null },
      parse(body, kept) {
        const [id = "", at = ""] = Buffer.from(body).toString().trim().split(";");
        if (at === "") throw new Error("no time");
        return { ok: true, event: { id, at: new Date(`${at}${kept.header("x-zone")}`) } };
      },
      place: ({ id }) => ({ type: "any", id }),
    });
    for (const store of [memory(), sqlite()]) {
      const receiver = createReceiver({ store, source: acme({ secrets: "a secret of many characters" }), ...common });
      onTestFinished(() => receiver.stop());
      receiver.onAny(() => {});
      const send = async (text: string, zone: string) => {
        const bytes = Buffer.from(text);
        await receiver.handle({ method: "POST", headers: { "x-zone": zone }, readBody: () => ({ ok: true, bytes }) });
        return (await receiver.inbox.stats()).counters.conflicts;
      };
      expect(await send("1;2026-01-01T00:00:00", "Z")).toBe(0);
      expect(await send("1;2026-01-01T00:00:00\n", "Z")).toBe(0);
      expect(await send("1;2026-01-01T02:00:00", "+02:00")).toBe(0);
      expect(await send("1;2026-01-01T02:00:00", "Z")).toBe(1);
    }
  });

  it("shopify() orders by updated_at", async () => {
    const receiver = createReceiver({ store: sqlite(), source: shopify({ secrets: TEST_SECRETS.shopify }), ...common });
    onTestFinished(() => receiver.stop());
    const seen: unknown[] = [];
    receiver
      .onAny(({ updated_at: at }) => void seen.push(at))
      .onLate(({ updated_at: at }) => void seen.push(`late ${at}`));
    const send = (at: string | undefined) => {
      const body = { id: 1, admin_graphql_api_id: "gid://shopify/Order/1", ...(at && { updated_at: at }) };
      return receiver.handle(incomingOf(signedRequest(body, { source: "shopify" })));
    };
    await send("2026-01-02T00:00:00+02:00");
    await receiver.drain();
    await send("2026-01-01T21:00:00Z");
    await send(undefined);
    await receiver.drain();
    expect(seen).toEqual(["2026-01-02T00:00:00+02:00", "late 2026-01-01T21:00:00Z", undefined]);
  });
});
