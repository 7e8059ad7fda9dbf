/** Several sources in one inbox, on every store: who handles what, what a repeat is, and what a process does with sources that it lacks. */
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver as create, eventIdentity, type InboxStore, openInbox, StoreError } from "../../src/index.ts";
import {
  defineSource,
  github,
  type SourceDefinition,
  type SourceEvents,
  service,
  shopify,
  standardWebhooks,
  stripe,
  type WebhookSource,
} from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import {
  createFakeClock,
  fixtures,
  incomingOf,
  type SignedRequest,
  signedRequest,
  TEST_SECRET,
  TEST_SECRETS,
} from "../../src/tools/testing/index.ts";
import { newInboxFile, recordedLog } from "./bench.ts";

/** A receiver that stops with its test. */
const createReceiver = ((options: never) => {
  const receiver = create(options);
  onTestFinished(() => receiver.stop());
  return receiver;
}) as typeof create;

const SECRETS = {
  messages: service({ secrets: TEST_SECRET }),
  billing: stripe({ secrets: TEST_SECRETS.stripe, lane: null }),
  code: github({ secrets: TEST_SECRETS.github }),
};

function receiverOf<Tx>(store: InboxStore<Tx>) {
  const { logger, log } = recordedLog();
  const receiver = createReceiver({ store, logger, sources: SECRETS });
  const handled: string[] = [];
  receiver.source("messages").onAny((event) => void handled.push(`messages ${event.eventType}`));
  receiver.source("billing").on("invoice.paid", (event) => void handled.push(`billing ${event.id}`));
  receiver.source("code").onAny((event, ctx) => void handled.push(`code ${ctx.header("x-github-event")} ${event.ref}`));
  const send = async (name: keyof typeof SECRETS, request: SignedRequest) =>
    JSON.parse((await receiver.source(name).handle(incomingOf(request))).body) as unknown;
  return { receiver, handled, log, send };
}

/** A receiver of one source. */
function receiving<Tx>(store: InboxStore<Tx>, source: WebhookSource<SourceEvents>) {
  const receiver = createReceiver({ store, source, logger: recordedLog().logger }).onAny(() => {});
  const send = async (request: SignedRequest) =>
    JSON.parse((await receiver.handle(incomingOf(request))).body) as unknown;
  return { inbox: receiver.inbox, send };
}

const paid = (id: string) => signedRequest(fixtures.stripe({ id }), { source: "stripe" });
const push = (after: string, id?: string, type?: string) =>
  signedRequest(fixtures.github({ id: after }), { source: "github", ...(id && { id }), ...(type && { type }) });

describe.each([
  ["memory", async () => memoryStore({ volatile: true }) as InboxStore<never>],
  ["SQLite", async () => sqliteStore(newInboxFile()) as unknown as InboxStore<never>],
])("a receiver of several sources, %s", (_, makeStore) => {
  it("answers a request that another source has signed with 401, and a repeat with its outcome", async () => {
    const { send } = receiverOf(await makeStore());
    expect(await send("billing", signedRequest(fixtures.inbound()))).toEqual({ error: "unauthorized" });
    expect(await send("messages", paid("evt_1"))).toEqual({ error: "unauthorized" });
    expect(await send("code", paid("evt_1"))).toEqual({ error: "unauthorized" });
    expect(await send("billing", paid("evt_1"))).toEqual(await send("billing", paid("evt_2")));
    expect(await send("billing", paid("evt_1"))).toEqual({ outcome: "duplicate" });
  });

  it("takes a captured body under another delivery id for a repeat, and still handles the real event under that id", async () => {
    const { handled, send, receiver, log } = receiverOf(await makeStore());
    await send("code", push("a".repeat(40), "id-1"));
    await receiver.drain();
    const repeat = await send("code", push("a".repeat(40), "id-2", "an.invented.type"));
    expect(repeat).toEqual({ outcome: "duplicate" });
    expect(await send("code", push("a".repeat(40), "id-1"))).toEqual({ outcome: "duplicate" });
    const ids = { source: "code", eventId: 1, reference: "id-2", first: "id-1" };
    expect(log.map(({ fields }) => fields).filter(({ code }) => code === "same_body")).toMatchObject([ids]);
    expect(receiver.counters).toMatchObject({ same_body: 1 });
    // Types differ, so the first answer came from the store: this one comes from memory.
    await send("code", push("a".repeat(40), "id-+15550100002"));
    expect(receiver.counters).toMatchObject({ same_body: 2 });
    await send("code", push("b".repeat(40), "id-2"));
    await receiver.drain();
    expect(handled).toHaveLength(2);
  });

  it("awaits an event of the messaging service, whatever the name of its entry", async () => {
    const { send, receiver } = receiverOf(await makeStore());
    const [queued, inbound] = [fixtures.queued(), fixtures.inbound()];
    for (const event of [queued, inbound]) await send("messages", signedRequest(event));
    await receiver.drain();
    for (const { apiClientId, eventType, data } of [queued, inbound]) {
      const ref = { apiClientId, messageId: data.messageId };
      expect(
        await receiver.waitFor(ref, (event) => "eventType" in event && event.eventType === eventType),
      ).toMatchObject({ eventType });
    }
  });

  it("keeps a signed body that is not an event, and replays it", async () => {
    const { send, receiver } = receiverOf(await makeStore());
    const body = signedRequest('{"id":1}', { source: "stripe" });
    expect(await send("billing", body)).toEqual({ outcome: "quarantined" });
    expect(await send("billing", body)).toEqual({ outcome: "quarantined" });
    const [row, ...others] = (await receiver.inbox.findQuarantined()).items;
    expect([row?.reason, others.length]).toEqual(["invalid_event", 0]);
    expect([row?.source, row?.tenant, row?.kinds]).toEqual(["billing", null, []]);
    await expect(receiver.inbox.replayQuarantined(row?.id ?? 0)).rejects.toMatchObject({ code: "invalid_event" });
  });

  it.each([
    ["by themselves", {}],
    ["in one lane", { lane: (event: object) => `${(event as { ref?: string }).ref}` }],
  ])("exports and erases an event by an id that only a header has, of events %s", async (_how, more) => {
    const source = github({ secrets: TEST_SECRETS.github, repeats: "id", ...more });
    const { inbox, ...receiver } = receiving(await makeStore(), source);
    for (const id of ["delivery-1", "delivery-2"]) await receiver.send(push(id.padEnd(40, "0"), id));
    const subject = { id: "id:delivery-1" };
    const told: unknown[] = [];
    for await (const record of inbox.exportSubject(subject)) told.push(record.id);
    expect(told).toEqual([1]);
    expect(await inbox.erase(subject)).toEqual({ ok: true, count: 1 });
    const { items } = await inbox.find({ order: "oldest" });
    expect(items.map(({ ownId, hasBody }) => [ownId, hasBody])).toEqual([
      ["id:delivery-1", false],
      ["id:delivery-2", true],
    ]);
    expect(await receiver.send(push("1".repeat(40), "delivery-1"))).toEqual({ outcome: "duplicate" });
  });
});

describe("a receiver of one source", () => {
  it("is typed and mounted like any other, and its entry has the name of its preset", async () => {
    const store = memoryStore({ volatile: true });
    const receiver = createReceiver({
      store,
      source: standardWebhooks({ secrets: TEST_SECRETS["standard-webhooks"] }),
    });
    const seen: unknown[] = [];
    receiver.on("user.created", (event) => void seen.push(event.data));
    const request = signedRequest(fixtures.standardWebhooks(), { source: "standard-webhooks" });
    expect((await receiver.handle(incomingOf(request))).status).toBe(200);
    await receiver.drain();
    expect(seen).toEqual([{ id: "user_000001" }]);
    expect((await receiver.inbox.find({ source: "standard-webhooks" })).items).toHaveLength(1);
  });
});

describe("a receiver of the messaging service alone", () => {
  it("has the entry service: another receiver with that entry knows its events again, and handles those that wait", async () => {
    const path = newInboxFile();
    const alone = createReceiver({ secrets: TEST_SECRET, store: sqliteStore(path) }).onAny(() => {});
    const sent = fixtures.inbound();
    expect((await alone.handle(incomingOf(signedRequest(sent)))).status).toBe(200);
    expect((await alone.inbox.find({ source: "service" })).items).toHaveLength(1);
    await alone.stop();

    const store = sqliteStore(path);
    const sources = { service: SECRETS.messages, code: SECRETS.code };
    const { logger, log } = recordedLog();
    const several = createReceiver({ store, logger, sources });
    several.source("code").onAny(() => {});
    const handled: string[] = [];
    several.source("service").onAny((_event, ctx) => void handled.push(ctx.identity));
    const repeat = await several.source("service").handle(incomingOf(signedRequest(sent)));
    expect(JSON.parse(repeat.body)).toEqual({ outcome: "duplicate" });
    await several.drain();
    const body = signedRequest(sent).body;
    expect(handled).toEqual([eventIdentity(JSON.parse(body.toString()), body)]);
    expect((await store.admit([])).map(({ name, preset }) => [name, preset])).toContainEqual(["service", "service"]);
    expect(log.map(({ fields }) => fields.code)).not.toContain("source_missing");
  });

  it("refuses an inbox whose entry service is of another kind, also for deliveries", async () => {
    const path = newInboxFile();
    const other = createReceiver({ store: sqliteStore(path), sources: { service: SECRETS.billing } });
    other.source("service").onAny(() => {});
    await other.start();
    await other.stop();
    const receiver = createReceiver({ secrets: TEST_SECRET, store: sqliteStore(path) }).onAny(() => {});
    await expect(receiver.start()).rejects.toMatchObject({ code: "wrong_source" });
    expect((await receiver.handle(incomingOf(signedRequest(fixtures.inbound())))).status).toBe(500);
    expect((await receiver.inbox.find()).items).toEqual([]);
  });

  it("gives its handlers the event's place in ctx.meta", async () => {
    const store = memoryStore({ volatile: true });
    const receiver = createReceiver({ secrets: TEST_SECRET, store });
    const metas: unknown[] = [];
    receiver.onAny((_event, ctx) => void metas.push(ctx.meta));
    const [queued, inbound] = [fixtures.queued({ messageId: "msg_1" }), fixtures.inbound({ messageId: "msg_2" })];
    for (const event of [queued, inbound]) await receiver.handle(incomingOf(signedRequest(event)));
    await receiver.drain();
    const owner = { source: "service", tenant: queued.apiClientId, traceparent: null };
    expect(metas).toEqual([
      { eventId: 1, laneId: 1, ...owner, lane: "msg_1", id: null, sequence: 1, eventType: "message.queued" },
      { eventId: 2, laneId: 2, ...owner, lane: null, id: "msg_2", sequence: 0, eventType: "message.inbound" },
    ]);
  });
});

describe("a process that lacks a source", () => {
  it("leaves its events as they are, for one that has it", async () => {
    const path = newInboxFile();
    const first = receiverOf(sqliteStore(path));
    await first.send("billing", paid("evt_1"));
    await first.receiver.stop();

    const { logger, log } = recordedLog();
    const without = createReceiver({ secrets: TEST_SECRET, store: sqliteStore(path), logger }).onAny(() => {});
    await without.start();
    await expect.poll(() => log.map(({ fields }) => fields.code)).toContain("source_missing");
    await expect.poll(async () => (await without.health()).reasons).toContain("source_missing");
    const left = async () => (await without.inbox.find({ source: "billing" })).items;
    // Its lease ends a moment after the reason is known.
    await expect.poll(left).toMatchObject([{ state: "pending", attempts: 0 }]);
    await without.stop();

    const clock = createFakeClock(Date.now() + 60_000);
    const last = createReceiver({ store: sqliteStore(path), sources: SECRETS, clock });
    const handled: string[] = [];
    last.source("billing").onAny((event) => void handled.push(event.id));
    for (const other of ["messages", "code"] as const) last.source(other).onAny(() => {});
    await last.drain();
    expect(handled).toEqual(["evt_1"]);
  });

  it("does not come first each time its events are due again", async () => {
    const path = newInboxFile();
    const clock = createFakeClock();
    const { logger, log } = recordedLog();
    const without = createReceiver({ secrets: TEST_SECRET, store: sqliteStore(path), clock, logger }).onAny(() => {});
    const attempts: number[] = [];
    const having = createReceiver({ source: SECRETS.code, store: sqliteStore(path), clock, logger });
    having.onAny((_event, ctx) => void attempts.push(ctx.attempt));
    await without.start();
    await having.start();
    having.pause();
    await having.handle(incomingOf(signedRequest(fixtures.github(), { source: "github" })));
    await clock.advance(1_000);
    expect(log.map(({ fields }) => fields.code)).toContain("source_missing");
    having.resume();
    await clock.advance(300_000);
    expect(attempts).toEqual([1]);
  });

  it("replays no quarantined body of it", async () => {
    const path = newInboxFile();
    const first = receiverOf(sqliteStore(path));
    await first.send("billing", signedRequest("[]", { source: "stripe" }));
    await first.receiver.stop();
    const without = createReceiver({ secrets: TEST_SECRET, store: sqliteStore(path) }).onAny(() => {});
    await without.drain();
    const refused = { code: "source_needed", message: expect.stringContaining('the source "billing"') };
    await expect(without.inbox.replayQuarantined(1)).rejects.toMatchObject(refused);
  });
});

describe("a quarantined body of another source", () => {
  it("becomes no event of the messaging service, whatever it and its tenant's name say", async () => {
    const path = newInboxFile();
    const source = stripe({ secrets: ({ tenant = "" }) => ({ secret: TEST_SECRETS.stripe, tenant }) });
    const receiver = createReceiver({ store: sqliteStore(path), source }).onAny(() => {});
    const request = signedRequest(fixtures.inbound(), { source: "stripe" });
    const answer = await receiver.handle({ ...incomingOf(request), tenant: "x,any" });
    expect(JSON.parse(answer.body)).toEqual({ outcome: "quarantined" });
    await receiver.stop();
    await using inbox = await openInbox({ store: sqliteStore(path) });
    const refused = { code: "source_needed", message: expect.stringContaining('the source "stripe"') };
    await expect(inbox.replayQuarantined(1)).rejects.toMatchObject(refused);
    expect((await inbox.find()).items).toEqual([]);
  });
});

describe("unsigned facts and the identity of an event", () => {
  it("a tenant's name, with one secret for all tenants: a captured body stays a repeat under any", async () => {
    const source = github({ secrets: TEST_SECRETS.github });
    const receiver = createReceiver({ store: memoryStore({ volatile: true }), source }).onAny(() => {});
    const sent = incomingOf(signedRequest(fixtures.github(), { source: "github" }));
    const outcomes: unknown[] = [];
    for (const tenant of ["a", "b"]) outcomes.push(JSON.parse((await receiver.handle({ ...sent, tenant })).body));
    expect(outcomes).toEqual([{ outcome: "handled" }, { outcome: "duplicate" }]);
  });

  it("a GitHub body without an id and a time: a member who comes, goes and comes again is three events", async () => {
    const source = github({ secrets: TEST_SECRETS.github });
    const receiver = createReceiver({ store: memoryStore({ volatile: true }), source }).onAny(() => {});
    const send = async (action: string, id: string) => {
      const body = { action, scope: "team", member: { id: 1 }, team: { id: 2 } };
      const request = signedRequest(body, { source: "github", type: "membership", id });
      return JSON.parse((await receiver.handle(incomingOf(request))).body) as unknown;
    };
    expect([await send("added", "1"), await send("removed", "2"), await send("added", "3")]).toEqual(
      Array.from({ length: 3 }, () => ({ outcome: "handled" })),
    );
    expect(await send("added", "3")).toEqual({ outcome: "duplicate" });
  });
});

describe("a store that cannot record an entry now", () => {
  it("makes start() fail and deliveries of the entry wait, and is asked again by the next of either", async () => {
    const store = memoryStore({ volatile: true });
    let failures = 2;
    const admit: typeof store.admit = async (entries) => {
      if (failures-- > 0) throw new StoreError("store_unavailable", "not now");
      return store.admit(entries);
    };
    const receiver = createReceiver({ store: { ...store, admit }, source: SECRETS.billing }).onAny(() => {});
    await expect(receiver.start()).rejects.toMatchObject({ code: "store_unavailable" });
    const statuses: number[] = [];
    for (const id of ["evt_1", "evt_1"]) statuses.push((await receiver.handle(incomingOf(paid(id)))).status);
    expect(statuses).toEqual([503, 200]);
    await receiver.start();
  });
});

describe("createReceiver({ sources })", () => {
  const store = () => memoryStore({ volatile: true });

  it.each([
    [{}, /at least one source/],
    [{ Billing: SECRETS.billing }, /lower-case letter/],
    [{ billing: { secrets: "x" } }, /sources.billing.*stripe/],
    [{ a: SECRETS.messages, b: SECRETS.messages }, /the messaging service twice, as "a" and "b"/],
  ])("refuses %o", (sources, message) => {
    expect(() => createReceiver({ store: store(), sources: sources as never })).toThrow(message);
  });

  it("starts only when each source has a handler", async () => {
    const receiver = createReceiver({ store: store(), sources: SECRETS });
    receiver.source("messages").onAny(() => {});
    await expect(receiver.start()).rejects.toMatchObject({
      code: "no_handlers",
      message: expect.stringContaining('receiver.source("billing").onAny'),
    });
  });

  it("has no handlers of its own, and says where they go", () => {
    const receiver = createReceiver({ store: store(), sources: SECRETS });
    for (const member of ["on", "onAny", "onUnknown", "onLate", "handle"] as const)
      expect(() => receiver[member]).toThrow(`call ${member} on one of them, receiver.source("NAME")`);
    expect(() => receiver.source("biling" as "billing")).toThrow(/Did you mean "billing"/);
    expect(receiver.source("billing")).toBe(receiver.source("billing"));
  });

  it("waits for no event where the messaging service is not among them", async () => {
    const receiver = createReceiver({ store: store(), sources: { code: SECRETS.code } });
    await expect(receiver.waitFor({} as never, "push")).rejects.toThrow("which this receiver does not have");
  });

  it("has of each source what an adapter takes, which goes on with that of an older receiver", async () => {
    const sources = { messages: SECRETS.messages, billing: SECRETS.billing };
    const receivers = [1, 2].map(() => {
      const receiver = createReceiver({ store: store(), sources });
      receiver
        .source("messages")
        .onLate(() => {})
        .onUnknown(() => {});
      return receiver;
    });
    const [older, newer] = receivers.map((receiver) => receiver.source("billing"));
    const handled: unknown[] = [];
    older?.onAny(() => {});
    newer?.onUnknown(({ id }) => void handled.push(id));
    expect(older?.key).toBe(`billing#${receivers[0]?.key}`);
    await receivers[0]?.start();
    newer?.takeOver(older as never);
    expect([older?.running, newer?.running, newer?.logger]).toEqual([true, true, receivers[1]?.logger]);
    await newer?.handle(incomingOf(paid("evt_1")));
    await expect.poll(() => handled).toEqual(["evt_1"]);
    expect(await newer?.drain()).toMatchObject({ claimed: 0 });
  });

  it("refuses an entry that the inbox knows as another kind of source", async () => {
    const path = newInboxFile();
    const first = receiverOf(sqliteStore(path));
    await first.receiver.start();
    await first.receiver.stop();
    const sources = { billing: shopify({ secrets: TEST_SECRETS.shopify, lane: null }) };
    const receiver = createReceiver({ store: sqliteStore(path), sources });
    receiver.source("billing").onAny(() => {});
    await expect(receiver.start()).rejects.toMatchObject({ code: "wrong_source" });
  });
});

/** 435 characters: one byte more than an id may have. */
const LONG = `xx${"€".repeat(433)}`;

describe("a definition that is wrong", () => {
  const body = Buffer.from("{}");
  const request = { method: "POST", headers: {}, body } as const;
  const base: SourceDefinition<object> = {
    preset: "acme",
    lastRetryMs: 0,
    verify: (_head, _body, [key]) =>
      key === undefined ? { ok: false, code: "none" } : { ok: true, key, signedAt: null },
    parse: () => ({ ok: true, event: {} }),
    place: (_event, { digest }) => ({ type: "thing", id: digest() }),
  };
  const answerOf = async (part: Partial<SourceDefinition<object>>, options = {}) => {
    const source = defineSource({ ...base, ...part })({ secrets: "a secret" });
    const receiver = createReceiver({ store: sqliteStore(newInboxFile()), source, ...options }).onAny(() => {});
    const { status } = await receiver.handle(incomingOf(request));
    const [row] = (await receiver.inbox.findQuarantined()).items;
    return [status, row?.reason];
  };
  const signedAt = (time: number): SourceDefinition<object>["verify"] => {
    return (_head, _body, [key]) =>
      key === undefined ? { ok: false, code: "none" } : { ok: true, key, signedAt: time };
  };
  const throws = () => {
    throw new TypeError("a bug");
  };
  const placed = (place: object) => ({ place: () => ({ type: "thing", id: "1", ...place }) });
  const bySequence = (at: number) => ({ ...placed({ lane: "1", at }), order: "sequence" }) as const;

  it.each<readonly [string, Partial<SourceDefinition<object>>, readonly unknown[]]>([
    ["verify throws", { verify: throws }, [500, undefined]],
    ["verify returns a time that is none", { verify: signedAt(Number.NaN) }, [500, undefined]],
    ["verify forgets the age", { verify: signedAt(0) }, [401, undefined]],
    ["verify forgets the age of a time ahead", { verify: signedAt(8e15) }, [401, undefined]],
    ["verify says no word", { verify: () => ({ ok: false, code: "A word" }) }, [401, undefined]],
    ["parse throws", { parse: throws }, [200, "source_failed"]],
    ["parse says no word", { parse: () => ({ ok: false }) as never }, [200, "source_failed"]],
    ["place throws", { place: throws }, [200, "source_failed"]],
    ["place returns nothing", { place: () => undefined as never }, [200, "source_failed"]],
    ["an id is missing", { place: () => ({ type: "thing" }) }, [200, "source_failed"]],
    ["an id is empty", placed({ id: "" }), [200, "source_failed"]],
    ["an id of 513 characters", placed({ id: "x".repeat(513) }), [200, "source_failed"]],
    ["an id of 1,301 bytes", placed({ id: LONG }), [200, "source_failed"]],
    ["a type is missing", { place: () => ({ id: "1" }) as never }, [200, "source_failed"]],
    ["a type of 1,301 bytes", placed({ type: LONG }), [200, "source_failed"]],
    ["a tenant of 1,301 bytes", placed({ tenant: LONG }), [200, "source_failed"]],
    ["a lane of 1,301 bytes", placed({ lane: LONG }), [200, "source_failed"]],
    ["a lane by sequence without a number", { ...placed({ lane: "1" }), order: "sequence" }, [200, undefined]],
    ["a number by sequence above 10,000", bySequence(10_001), [200, "source_failed"]],
    ["a number by sequence below 0", bySequence(-1), [200, "source_failed"]],
    [
      "a wait by sequence that is not a number",
      { ...bySequence(1), gapWait: () => Number.NaN },
      [200, "source_failed"],
    ],
  ])("is answered, and nothing is lost: %s", async (_, part, expected) => {
    expect(await answerOf(part)).toEqual(expected);
  });

  it("keeps what it fails on even where invalid bodies are rejected: the sender is not to blame", async () => {
    expect(await answerOf({ parse: throws }, { quarantine: "reject" })).toEqual([200, "source_failed"]);
  });

  it("can make events that contain themselves: a handler that fails on one is retried", async () => {
    const event: { self?: object; text: string } = { text: "a secret text" };
    event.self = event;
    const { logger, log } = recordedLog();
    const source = defineSource({ ...base, parse: () => ({ ok: true, event }) })({ secrets: "a secret" });
    const receiver = createReceiver({ store: memoryStore({ volatile: true }), source, logger }).onAny(() => {
      throw new Error("It failed on a secret text.");
    });
    await receiver.handle(incomingOf(request));
    await receiver.drain();
    expect((await receiver.inbox.find()).items).toMatchObject([{ state: "pending", attempts: 1 }]);
    expect(JSON.stringify(log)).not.toContain("a secret text");
  });

  it("loses no body: it is kept once it is verified, and handled when the code is fixed", async () => {
    const store = sqliteStore(newInboxFile());
    const sourceOf = (parse: SourceDefinition<object>["parse"]) =>
      defineSource({ ...base, parse })({ secrets: "a secret" });
    const broken = createReceiver({ store, source: sourceOf(throws) }).onAny(() => {});
    expect(JSON.parse((await broken.handle(incomingOf(request))).body)).toEqual({ outcome: "quarantined" });
    const [row] = (await broken.inbox.findQuarantined()).items;
    await broken.stop();
    const handled: unknown[] = [];
    const source = sourceOf((bytes) => ({ ok: true, event: { text: Buffer.from(bytes).toString() } }));
    const fixed = createReceiver({ store, source }).onAny((event) => void handled.push(event));
    expect(await fixed.inbox.replayQuarantined(row?.id ?? 0)).toMatchObject({ ok: true });
    await fixed.drain();
    expect(handled).toEqual([{ text: "{}" }]);
  });
});
