/** What `defineSource()` holds for every source: whose an event is, which key covers it, and what an order needs. */
import { createHmac } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import {
  defineSource,
  github,
  type Keyring,
  type KeyringProvider,
  type SourceDefinition,
  type SourceEvents,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  twilio,
  type WebhookSource,
} from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import {
  createFakeClock,
  fixtures,
  incomingOf,
  type SignedSource,
  signedRequest,
  TEST_SECRETS,
} from "../../src/tools/testing/index.ts";
import { newInboxFile, recordedLog } from "../receiver/bench.ts";

const NOW = 1_760_000_100_000;
const MINUTE = 60_000;
const [A, B] = ["the secret of tenant a", "the secret of tenant b"] as const;

/** An event says of itself what it is: the body is JSON. */
interface Own {
  readonly id?: string;
  readonly tenant?: string;
  readonly kind?: string;
  readonly lane?: string;
  readonly at?: number;
  readonly hello?: true;
}

const definition: SourceDefinition<Own> = {
  preset: "own",
  lastRetryMs: 10 * MINUTE,
  signedBy: [["x-signature"], ["x-other", "x-time"]],
  verify(head, body, keys) {
    const header = head.header("x-signature") ?? head.header("x-other");
    const unsigned = keys.find(({ slot }) => slot === "unsigned");
    if (header === undefined && unsigned !== undefined) return { ok: true, key: unsigned, signedAt: null };
    const key = keys.find((each) => each.signed(Buffer.from(header ?? "", "hex"), "sha256", body));
    return key === undefined ? { ok: false, code: "signature_mismatch" } : { ok: true, key, signedAt: null };
  },
  parse(body) {
    const text = Buffer.from(body).toString();
    return text.startsWith("{") ? { ok: true, event: JSON.parse(text) } : { ok: false, code: "invalid_json" };
  },
  place: ({ id = "1", ...place }) => ({ type: "thing", id, ...place }),
  handshake: ({ hello }) => (hello ? { body: "hello" } : null),
};

const signature = (text: string, secret: string) => createHmac("sha256", secret).update(text).digest("hex");

function receiving(source: WebhookSource<SourceEvents>, store = sqliteStore(newInboxFile())) {
  const { logger, log } = recordedLog();
  const clock = createFakeClock(NOW);
  const receiver = createReceiver({ store, clock, logger, sources: { entry: source } });
  onTestFinished(() => receiver.stop());
  const handled: (string | null)[] = [];
  receiver.source("entry").onAny((_event, { meta }) => void handled.push(meta.tenant));
  const post = async (text: string, headers: Record<string, string>, tenant?: string) => {
    const incoming = incomingOf({ method: "POST", headers, body: Buffer.from(text) });
    const { status, body } = await receiver.source("entry").handle({ ...incoming, ...(tenant && { tenant }) });
    return status === 200 ? (JSON.parse(body) as { outcome: string }).outcome : status;
  };
  const send = (event: Own | string, secret: string, tenant?: string) => {
    const text = typeof event === "string" ? event : JSON.stringify(event);
    return post(text, { "x-signature": signature(text, secret) }, tenant);
  };
  return { receiver, clock, log, handled, post, send };
}

const own = (secrets: Keyring | KeyringProvider, more: Partial<SourceDefinition<Own>> = {}) =>
  defineSource({ ...definition, ...more })({ secrets });

describe("a tenant", () => {
  it("is that of the key: one body under four spellings of a name is one event", async () => {
    const { receiver, handled, send } = receiving(own(() => ({ secret: A, tenant: "acme" })));
    const outcomes = [];
    for (const name of ["acme", "ACME", "acme/", "%61cme"]) outcomes.push(await send({}, A, name));
    expect(outcomes).toEqual(["accepted", "duplicate", "duplicate", "duplicate"]);
    await receiver.drain();
    expect(handled).toEqual(["acme"]);
  });

  it("is that of the signed bytes, if the key covers it", async () => {
    const { receiver, handled, send } = receiving(
      own({
        current: [
          { secret: A, tenant: "a" },
          { secret: B, tenant: "b" },
        ],
      }),
    );
    expect(await send({ tenant: "a" }, A)).toBe("accepted");
    expect(await send({ tenant: "b" }, A)).toBe(401);
    expect(await send({ tenant: "b" }, B)).toBe("accepted");
    await receiver.drain();
    expect(handled.toSorted()).toEqual(["a", "b"]);
    expect(receiver.counters).toMatchObject({ "refused:out_of_scope": 1, "slot:entry:current": 2 });
  });

  it("is that of the signed bytes, also where one secret signs for all", async () => {
    const { receiver, handled, send } = receiving(own({ secret: A, tenant: null }));
    for (const tenant of ["a", "b", "a"]) await send({ tenant }, A);
    await send({}, A);
    await receiver.drain();
    expect(handled.toSorted()).toEqual(["a", "b", null].toSorted());
  });

  it("that is looked up by name must be said by its secret: 503 until then, and the log has the fix", async () => {
    const secrets = new Map<string, Keyring>([
      ["nameless", A],
      ["half", { current: { secret: A, tenant: "half" }, next: B }],
      ["named", { secret: A, tenant: "named" }],
      ["shared", { secret: A, tenant: null }],
    ]);
    const { log, send } = receiving(own(({ tenant = "" }) => secrets.get(tenant)));
    expect(await send({}, A, "nameless")).toBe(503);
    expect(await send({}, A, "half")).toBe(503);
    expect(await send({}, A, "named")).toBe("accepted");
    expect(await send({}, A, "shared")).toBe("accepted");
    expect(await send({}, A, "unknown")).toBe(401);
    expect(JSON.stringify(log)).toMatch(/return \{ secret, tenant: .*tenant: null if one secret signs for all/);
    expect(JSON.stringify(log)).not.toContain(A);
  });

  it("named first after events without one warns once, and makes them new", async () => {
    let secrets: Keyring = A;
    const store = sqliteStore(newInboxFile());
    const before = receiving(
      own(() => secrets),
      store,
    );
    expect(await before.send({}, A)).toBe("accepted");
    await before.receiver.stop();
    secrets = { secret: A, tenant: "acme" };
    const { log, send } = receiving(
      own(() => secrets),
      store,
    );
    for (const id of ["1", "2", "3"]) expect(await send({ id }, A)).toBe("accepted");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(log.filter(({ fields }) => fields.code === "first_tenant")).toMatchObject([
      { level: "warn", fields: { source: "entry", tenant: "acme" } },
    ]);
  });

  it("that its bytes name warns of nothing, and neither does the first of a new inbox", async () => {
    const named = receiving(own({ secret: A, tenant: null }));
    await named.send({}, A);
    await named.send({ tenant: "a" }, A);
    const first = receiving(own({ secret: A, tenant: "a" }));
    await first.send({}, A);
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const { log } of [named, first]) expect(log.some(({ fields }) => fields.code === "first_tenant")).toBe(false);
  });
});

describe("kinds of events", () => {
  const kinds = ["orders", "refunds"];
  const both = { orders: A, refunds: B };

  it("have secrets of their own, in quarantine too", async () => {
    const { receiver, send } = receiving(own(both, { kinds }));
    expect(await send({ kind: "orders" }, A)).toBe("accepted");
    expect(await send({ kind: "orders", id: "2" }, B)).toBe(401);
    expect(await send({ kind: "refunds", id: "3" }, B)).toBe("accepted");
    // It does not say its kind: every key covers it.
    expect(await send({ id: "4" }, B)).toBe("accepted");
    expect([await send("no event", A), await send("no event", B), await send("no event", B)]).toEqual(
      Array(3).fill("quarantined"),
    );
    const { items } = await receiver.inbox.findQuarantined();
    expect(items.map((row) => row.kinds).toSorted()).toEqual([["orders"], ["refunds"]]);
  });

  it("of a secret limit what a quarantined body may become", async () => {
    const store = sqliteStore(newInboxFile());
    const broken = receiving(own(both, { kinds, parse: () => ({ ok: false, code: "not_yet" }) }), store);
    await broken.send({ kind: "orders", id: "1" }, A);
    await broken.send({ kind: "orders", id: "2" }, B);
    const { items } = await broken.receiver.inbox.findQuarantined({ limit: 10 });
    await broken.receiver.stop();
    const { receiver, handled } = receiving(own(both, { kinds }), store);
    const [second, first] = items;
    expect(await receiver.inbox.replayQuarantined(first?.id ?? 0)).toMatchObject({ ok: true });
    await expect(receiver.inbox.replayQuarantined(second?.id ?? 0)).rejects.toThrow(/does not cover the event in it/);
    await receiver.drain();
    expect(handled).toHaveLength(1);
  });

  it("may be unsigned: without a signature an event must be of such a kind", async () => {
    const { log, post, send } = receiving(own({ orders: A, refunds: "dangerouslyUnsigned" }, { kinds }));
    expect(JSON.stringify(log)).toMatch(/anyone who knows the URL can forge refunds events/);
    expect(await post('{"kind":"refunds"}', {})).toBe("accepted");
    expect(await post('{"kind":"orders"}', {})).toBe(401);
    expect(await post('{"id":"2"}', {})).toBe(401);
    expect(await post('{"kind":"refunds","id":"3"}', { "x-signature": "00" })).toBe(401);
    expect(await send({ kind: "refunds", id: "4" }, A)).toBe(401);
  });

  it("with one secret for all, are all signed by it", async () => {
    const { send } = receiving(own(A, { kinds }));
    expect([await send({ kind: "orders" }, A), await send({ kind: "refunds", id: "2" }, A)]).toEqual(
      Array(2).fill("accepted"),
    );
  });

  it("that a source does not have are refused at construction", () => {
    for (const secrets of [{ orders: A, returns: B } as never, { secret: A, kind: "returns" }])
      expect(() =>
        own(secrets, { kinds }).connect("entry", { clock: createFakeClock(NOW), logger: silentLogger }),
      ).toThrow(/returns|"secrets\.kind" must be "orders" or "refunds"/);
    const connect = () =>
      own({ secret: A, kind: "orders" }).connect("entry", { clock: createFakeClock(NOW), logger: silentLogger });
    expect(connect).toThrow(/"secrets\.kind" has no meaning here: this source has one kind of events/);
  });
});

describe("signedBy", () => {
  const scene = (secrets: Keyring) => {
    const { receiver } = receiving(own(secrets, { kinds: ["orders"] }));
    return async (headers: Record<string, string>) => {
      let isRead = false;
      const readBody = () => {
        isRead = true;
        return { ok: true, bytes: Buffer.from("{}") } as const;
      };
      await receiver.source("entry").handle({ method: "POST", headers, readBody });
      return isRead;
    };
  };

  it.each<readonly [boolean, Record<string, string>]>([
    [true, { "x-signature": "00" }],
    [true, { "x-other": "00", "x-time": "1" }],
    [false, {}],
    [false, { "x-other": "00" }],
    [false, { "x-time": "1" }],
    [false, { "x-signature": "" }],
    [false, { signature: "00" }],
  ])("reads a body: %s, for %j", async (expected, headers) => {
    expect(await scene(A)(headers)).toBe(expected);
  });

  it("refuses nothing while a kind is unsigned", async () => {
    expect(await scene({ orders: "dangerouslyUnsigned" })({})).toBe(true);
  });
});

describe("what verify proved", () => {
  it("is kept as :proven, and nothing else of the request is, from the first delivery on", async () => {
    const seen: unknown[] = [];
    const source = own(A, {
      keep: ["x-kept", "?zone", ":path"],
      verify(head, body, keys) {
        const verdict = definition.verify(head, body, keys, { now: NOW, checkAge: () => null });
        return verdict.ok ? { ...verdict, proven: `proven ${head.header("x-id")}` } : verdict;
      },
      place(_event, _part, kept) {
        seen.push([":proven", "x-kept", "?zone", ":path", ":query", "x-id"].map((name) => kept.header(name)));
        return { type: "thing", id: kept.header(":proven") ?? "" };
      },
    });
    const { receiver } = receiving(source);
    const headers = { "x-signature": signature("{}", A), "x-kept": "k", "x-id": "7" };
    const incoming = incomingOf({ method: "POST", headers, body: Buffer.from("{}") });
    await receiver.source("entry").handle({ ...incoming, url: "/a/b?zone=e%20u&secret=s" });
    expect(seen).toEqual([["proven 7", "k", "e u", "/a/b", undefined, undefined]]);
    const { items } = await receiver.inbox.find();
    expect(items.map(({ ownId }) => ownId)).toEqual(["proven 7"]);
  });
});

describe("order: sequence", () => {
  const bySequence = (more: Partial<SourceDefinition<Own>> = {}) =>
    own(A, {
      order: "sequence",
      place: ({ id, ...place }) => ({ type: "thing", ...(place.lane === undefined ? { id: id ?? "1" } : place) }),
      ...more,
    });

  it.each<readonly [string, Partial<SourceDefinition<Own>>, readonly number[], number]>([
    ["1 by default", {}, [2, 1], 2],
    ["0", { firstSequence: 0 }, [1, 0], 2],
    ["any", { firstSequence: "any" }, [7], 1],
  ])("waits for the first of a lane: %s", async (_, more, sequences, count) => {
    const { receiver, handled, send } = receiving(bySequence(more));
    for (const at of sequences.slice(0, -1)) {
      expect(await send({ lane: "l", at }, A)).toBe("accepted");
      await receiver.drain();
      expect(handled).toEqual([]);
    }
    await send({ lane: "l", at: sequences.at(-1) ?? 0 }, A);
    await receiver.drain();
    expect(handled).toHaveLength(count);
  });

  it.each<readonly [string, Partial<SourceDefinition<Own>>, number]>([
    ["as long as its provider may send it", {}, 14 * MINUTE],
    ["as long as gapWait says", { gapWait: () => MINUTE }, MINUTE],
  ])("waits for a missing one %s", async (_, more, waitMs) => {
    const { receiver, clock, handled, send } = receiving(bySequence(more));
    await send({ lane: "l", at: 2 }, A);
    await clock.advance(waitMs - 1_000);
    await receiver.drain();
    expect(handled).toEqual([]);
    await clock.advance(2_000);
    await receiver.drain();
    expect(handled).toHaveLength(1);
  });

  it("knows an event by lane, sequence and type, and one by itself by its id", async () => {
    const { send } = receiving(bySequence());
    expect(await send({ lane: "l", at: 1 }, A)).toBe("accepted");
    expect(await send({ lane: "l", at: 1, kind: "other bytes" }, A)).toBe("duplicate");
    expect(await send({ id: "9" }, A)).toBe("accepted");
    expect(await send({ id: "9" }, A)).toBe("duplicate");
  });

  it("refuses the options of other orders", () => {
    const make = defineSource({ ...definition, order: "sequence" });
    for (const option of [{ lane: () => "all" }, { position: () => 1 }, { holdBackMs: 1 }, { lane: null }])
      expect(() => make({ secrets: A, ...option })).toThrow(/has no option/);
    for (const part of [
      { order: "sequence", atIs: "time" },
      { order: "position", gapWait: () => 1 },
      { order: "arrival", firstSequence: 1 },
      { firstSequence: "any" },
    ] as const)
      expect(() => defineSource({ ...definition, ...part })).toThrow(/has no effect without order/);
    for (const firstSequence of [-1, 10_001, 0.5, "first" as never])
      expect(() => defineSource({ ...definition, order: "sequence", firstSequence })).toThrow(/"firstSequence"/);
  });
});

describe("the options lane, position, holdBackMs and filter", () => {
  const URL = "https://example.com/hook";
  const PRESETS: Readonly<Record<SignedSource, (options: object) => WebhookSource<SourceEvents>>> = {
    stripe: (options) => stripe({ secrets: TEST_SECRETS.stripe, ...options }),
    github: (options) => github({ secrets: TEST_SECRETS.github, ...options }),
    shopify: (options) => shopify({ secrets: TEST_SECRETS.shopify, ...options }),
    slack: (options) => slack({ secrets: TEST_SECRETS.slack, ...options }),
    "standard-webhooks": (options) => standardWebhooks({ secrets: TEST_SECRETS["standard-webhooks"], ...options }),
    twilio: (options) => twilio({ secrets: TEST_SECRETS.twilio, url: URL, ...options }),
  };
  const CONTENT: Readonly<Record<SignedSource, () => object>> = {
    stripe: () => fixtures.stripe(),
    github: () => fixtures.github(),
    shopify: () => fixtures.shopify(),
    slack: () => fixtures.slack(),
    "standard-webhooks": () => fixtures.standardWebhooks(),
    twilio: () => fixtures.twilio(),
  };

  it.each(Object.keys(PRESETS) as SignedSource[])("are those of %s", async (preset) => {
    const options = { lane: () => "mine", position: () => 7, holdBackMs: 1_000 };
    const request = incomingOf(signedRequest(CONTENT[preset](), { source: preset, timestamp: NOW, url: URL }));
    const { receiver, clock, handled } = receiving(PRESETS[preset](options));
    expect((await receiver.source("entry").handle({ ...request, url: "/hook" })).status).toBe(200);
    const { items } = await receiver.inbox.find();
    expect(items).toMatchObject([{ lane: { name: "mine", order: "position" }, sequence: 7_000 }]);
    await receiver.start();
    await clock.advance(900);
    expect(handled).toEqual([]);
    await clock.advance(200);
    expect(handled).toHaveLength(1);

    const filtering = receiving(PRESETS[preset]({ filter: () => false }));
    await filtering.receiver.source("entry").handle({ ...request, url: "/hook" });
    expect(filtering.receiver.counters).toMatchObject({ "filtered:entry": 1 });
  });
});

describe("secrets", () => {
  it.each<readonly [string, WebhookSource<SourceEvents>]>([
    ["stripe", stripe({ secrets: "15 characters.." })],
    ["standard-webhooks", standardWebhooks({ secrets: "c2hvcnQ=" })],
    ["own", own("short")],
  ])("of fewer than 16 bytes warn: %s", (_, source) => {
    const { log } = receiving(source);
    expect(log).toMatchObject([
      { level: "warn", fields: { code: "keyring_warning" }, message: expect.stringMatching(/can be guessed/) },
    ]);
  });

  it("that two entries have in common are named in a warning", () => {
    const { logger, log } = recordedLog();
    const sources = {
      one: own({ current: A, next: B }),
      two: stripe({ secrets: B }),
      three: github({ secrets: "another secret of a provider" }),
    };
    createReceiver({ store: memoryStore({ volatile: true }), logger, sources });
    expect(log).toMatchObject([{ level: "warn", fields: { code: "keyring_warning", source: "two" } }]);
    expect(log[0]?.message).toMatch(/"one" and "two" have an equal secret/);
  });
});
