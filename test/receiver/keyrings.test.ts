/** Which secret vouches for what: kinds on one URL, scopes, rotation, and keyrings that are read. */
import { createHmac } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  type BodyResult,
  createReceiver,
  type Keyring,
  type KeyringContext,
  type SourceEvents,
  type WebhookSource,
} from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { github, hmacSource } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { deferred, HOUR, idleTurns, incoming, memoryBench, SECRET, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const INBOUND = "the-secret-of-inbound-events-32b";
const DELIVERY = "the-secret-of-delivery-events-32";
const OLD = "the-secret-before-the-rotation-3";
const NEXT = "the-secret-after-the-rotation-32";

describe("kinds on one URL (RCV-8, DLV-9)", () => {
  const kinds = { inbound: INBOUND, delivery: DELIVERY };

  it("takes each kind by its own secret, and never by the other's (RCV-8)", async () => {
    const { deliver, receiver } = sqliteBench({ secrets: kinds });
    const statuses = [
      (await deliver(inbound(), { secret: INBOUND })).status,
      (await deliver(inbound({ messageId: "x" }), { secret: DELIVERY })).status,
      (await deliver(outbound("queued"), { secret: DELIVERY })).status,
      (await deliver(outbound("sent"), { secret: INBOUND })).status,
    ];
    expect(statuses).toEqual([200, 401, 200, 401]);
    expect(receiver.counters).toEqual({ "slot:service:current": 2, "refused:out_of_scope": 2 });
    expect((await receiver.inbox.stats()).counters.accepted).toBe(2);
  });

  it("takes an unsigned kind, and no unsigned body of the signed kind (RCV-8)", async () => {
    const { deliver, receiver } = sqliteBench({ secrets: { inbound: "dangerouslyUnsigned", delivery: DELIVERY } });
    const answers = {
      unsignedInbound: await deliver(inbound(), { unsigned: true }),
      unsignedOutbound: await deliver(outbound("queued"), { unsigned: true }),
      unsignedJunk: await deliver("not json", { unsigned: true }),
      unsignedWithoutDirection: await deliver('{"eventType":"message.new"}', { unsigned: true }),
      unsignedUnknownOutbound: await deliver('{"eventType":"x","direction":"outbound"}', { unsigned: true }),
      signedOutbound: await deliver(outbound("queued"), { secret: DELIVERY }),
      halfSigned: await deliver(inbound(), { headers: { "x-service-signature": undefined } }),
      wronglySigned: await deliver(inbound({ messageId: "y" })),
    };
    expect(Object.entries(answers).filter(([, answer]) => answer.status === 200)).toHaveLength(2);
    expect([answers.unsignedInbound.status, answers.signedOutbound.status]).toEqual([200, 200]);
    expect(answers.unsignedOutbound.body).toBe('{"error":"unauthorized"}');
    expect((await receiver.inbox.stats()).counters).toMatchObject({ accepted: 2, quarantined: 0 });
  });
});

describe("scoped secrets", () => {
  const tenants = ["apc_a", "apc_b", "apc_c"];
  const secretOf = (tenant: string) => `the-secret-of-the-tenant-${tenant}`;
  const secrets = { current: tenants.map((tenant) => ({ secret: secretOf(tenant), tenant })) };

  it("sign for their own tenant alone: the whole matrix (RCV-2)", async () => {
    const { deliver, receiver } = sqliteBench({ secrets });
    for (const signer of tenants) {
      for (const tenant of tenants) {
        const events = [inbound({ apiClientId: tenant }), outbound("queued", { apiClientId: tenant })];
        for (const event of events) {
          const { status } = await deliver(event, { secret: secretOf(signer) });
          expect([signer, tenant, status]).toEqual([signer, tenant, signer === tenant ? 200 : 401]);
        }
      }
    }
    expect((await receiver.inbox.stats()).counters.accepted).toBe(2 * tenants.length);
  });
});

describe("rotation (RCV-9)", () => {
  it("takes the previous secret until its end to the millisecond, and counts its use (RCV-9)", async () => {
    const { clock, deliver, receiver } = sqliteBench({
      secrets: { current: SECRET, previous: { secret: OLD, validUntil: 1_760_000_000_000 + HOUR }, next: NEXT },
    });
    const end = clock.now() + HOUR;
    const statusAt = async (now: number, secret: string) => {
      clock.set(now);
      return (await deliver(inbound({ messageId: `m ${now} ${secret}` }), { secret })).status;
    };
    expect(await statusAt(end - 1, OLD)).toBe(200);
    expect(await statusAt(end, OLD)).toBe(401);
    expect(await statusAt(end, SECRET)).toBe(200);
    expect(await statusAt(end, NEXT)).toBe(200);
    expect(receiver.counters).toEqual({
      "slot:service:previous": 1,
      "slot:service:current": 1,
      "slot:service:next": 1,
      "refused:signature_mismatch": 1,
    });
  });

  it("decides about no delivery by what was read for a forgery before it came (RCV-9)", async () => {
    let current = OLD;
    const { deliver, clock } = memoryBench({ secrets: async () => current });
    expect((await deliver(inbound({ messageId: "a" }), { secret: OLD })).status).toBe(200);
    await clock.advance(5_000);
    expect((await deliver(inbound(), { secret: NEXT })).status).toBe(401);
    current = SECRET;
    await clock.advance(100);
    const waiting = deliver(inbound({ messageId: "b" }));
    await clock.advance(1_900);
    expect((await waiting).status).toBe(200);
  });
});

describe("secrets of other sources that are read (RCV-9)", () => {
  /** A receiver of `source` in memory. The body of each delivery is another one, of `bytes` at least. */
  function receiving(source: WebhookSource<SourceEvents>) {
    const clock = createFakeClock();
    const store = memoryStore({ volatile: true });
    const receiver = createReceiver({ source, store, clock, logger: silentLogger });
    onTestFinished(() => receiver.stop());
    let sent = 0;
    const push = async (secret: string, { tenant, bytes = 0 }: { tenant?: string; bytes?: number } = {}) => {
      const body = `{"n":${sent++},"text":"${"x".repeat(bytes)}"}`;
      const signature = createHmac("sha256", secret).update(body).digest("hex");
      const headers = { "x-github-event": "push", "x-github-delivery": `${sent}` };
      const request = incoming(body, clock.now(), tenant === undefined ? {} : { tenant });
      const signed = { ...headers, "x-hub-signature-256": `sha256=${signature}` };
      return (await receiver.handle({ ...request, headers: signed })).status;
    };
    return { receiver, clock, push };
  }

  it("decide about a challenge too only if they were read after it came", async () => {
    let current = OLD;
    const acme = hmacSource({
      ...{ preset: "acme", header: "acme-signature", identity: "digest", type: { body: "type" }, lastRetryMs: 0 },
      challenge: ({ query }, keys) =>
        keys.some((key) => Buffer.from(key.hmac("sha256", "hello")).toString("hex") === query)
          ? { body: "hello" }
          : null,
    });
    const { receiver, clock } = receiving(acme({ secrets: async () => current }));
    const ask = async (secret: string) => {
      const url = `/hooks?${createHmac("sha256", secret).update("hello").digest("hex")}`;
      return (await receiver.handle({ ...incoming("", clock.now(), { method: "GET" }), url })).status;
    };
    expect(await ask(OLD)).toBe(200);
    current = SECRET;
    await clock.advance(100);
    const asked = ask(SECRET);
    await clock.advance(1_900);
    expect(await asked).toBe(200);
    await clock.advance(100);
    const refused = ask(OLD);
    await clock.advance(1_900);
    expect(await refused).toBe(401);
  });

  it("accept a replaced secret until the end that was read last, although no secret is new", async () => {
    const replacedUntil = (validUntil: number): Keyring => ({
      current: SECRET,
      previous: { secret: OLD, validUntil },
    });
    let prolonged = 0;
    const { clock, push } = receiving(github({ secrets: async () => replacedUntil(since + 90_000 + prolonged) }));
    const since = clock.now();
    expect(await push(OLD)).toBe(200);
    prolonged = 90_000;
    await clock.advance(60_000);
    expect(await push(OLD)).toBe(200);
    await clock.advance(60_000);
    expect(await push(OLD)).toBe(200);
    await clock.advance(60_000);
    expect(await push(OLD)).toBe(401);
  });

  it("count a secret by its new place once it was read there, although no secret is new", async () => {
    let current: Keyring = { current: OLD, next: SECRET };
    const { receiver, clock, push } = receiving(github({ secrets: async () => current }));
    expect(await push(SECRET)).toBe(200);
    current = { current: [OLD, SECRET] };
    await clock.advance(60_000);
    expect(await push(SECRET)).toBe(200);
    expect(receiver.counters).toEqual({ "slot:github:next": 1, "slot:github:current": 1 });
  });

  it("are not asked for where no kind is unsigned and the headers that prove a delivery are missing", async () => {
    let asked = 0;
    const secrets = async () => {
      asked++;
      return SECRET;
    };
    const { receiver, clock, push } = receiving(github({ secrets }));
    expect((await receiver.handle(incoming("{}", clock.now()))).status).toBe(401);
    expect(asked).toBe(0);
    expect(await push(SECRET)).toBe(200);
    expect(asked).toBe(1);
  });

  const LARGE = { bytes: 17 * 1024 * 1024 };

  it("are no reason to wait where they are fixed, however large the body is", async () => {
    const { push } = receiving(github({ secrets: SECRET }));
    expect(await push(OLD, LARGE)).toBe(401);
  });

  it("are read also for a body that finds no room to wait, so that its repeat is taken", async () => {
    const current = new Map(["a", "b"].map((tenant) => [tenant, OLD]));
    let ofA: Promise<void> = Promise.resolve();
    const secrets = async ({ tenant = "" }: KeyringContext) => {
      if (tenant === "a") await ofA;
      return { secret: current.get(tenant) ?? "", tenant };
    };
    const { push, clock } = receiving(github({ secrets }));
    for (const tenant of current.keys()) expect(await push(OLD, { tenant })).toBe(200);
    const slow = deferred<void>();
    ofA = slow.promise;
    for (const tenant of current.keys()) current.set(tenant, SECRET);
    await clock.advance(2_000);
    const waits = push(SECRET, { ...LARGE, tenant: "a" });
    expect(await push(SECRET, { ...LARGE, tenant: "b" })).toBe(503);
    expect(await push(SECRET, { ...LARGE, tenant: "b" })).toBe(200);
    slow.resolve();
    expect(await waits).toBe(200);
  });
});

describe("keyrings that are read", () => {
  it.each<readonly [string, KeyringContext, KeyringContext]>([
    ["the tenant", { tenant: "a", route: "r" }, { tenant: "b", route: "r" }],
    ["the route", { tenant: "a", route: "r" }, { tenant: "a", route: "s" }],
    ["which of the two is said", { tenant: "a" }, { route: "a" }],
    ["where one part ends", { tenant: "b,c", route: "a" }, { tenant: "c", route: "a,b" }],
  ])("are apart for requests that differ in one thing: %s", async (_part, one, other) => {
    const theirs = "the-signing-secret-of-the-others";
    const isOne = (context: KeyringContext) => context.tenant === one.tenant && context.route === one.route;
    const ringOf = (secret: string): Keyring => ({ current: { secret, tenant: "apc_1" } });
    const { deliver } = sqliteBench({ secrets: async (context) => ringOf(isOne(context) ? SECRET : theirs) });
    const statuses: number[] = [];
    for (const [context, secret] of [[one, SECRET], [other, SECRET], [other, theirs], [one, theirs]] as const) // biome-ignore format: a table
      statuses.push((await deliver(inbound(), { ...context, secret })).status);
    expect(statuses).toEqual([200, 401, 200, 401]);
  });

  it("asks per tenant and route, and tells nothing unverified else", async () => {
    const asked: KeyringContext[] = [];
    const { deliver } = sqliteBench({
      secrets: async (context) => {
        asked.push(context);
        return context.tenant === "a" ? { current: { secret: SECRET, tenant: "apc_1" } } : undefined;
      },
    });
    expect((await deliver(inbound(), { tenant: "a", route: "/hooks" })).status).toBe(200);
    expect((await deliver(inbound(), { tenant: "stranger" })).status).toBe(401);
    expect((await deliver(inbound())).status).toBe(401);
    expect(asked).toEqual([{ tenant: "a", route: "/hooks" }, { tenant: "stranger" }, {}]);
  });

  it("read no body while they are looked up, and answer a stranger as any other forger (RCV-2)", async () => {
    const lookUp = deferred<Keyring | undefined>();
    const { deliver } = memoryBench({ secrets: () => lookUp.promise });
    let reads = 0;
    const readBody = (): BodyResult => {
      reads += 1;
      return { ok: true, bytes: Buffer.from(inbound()) };
    };
    const answer = deliver(inbound(), { readBody });
    await idleTurns();
    expect(reads).toBe(0);
    lookUp.resolve(undefined);
    // The connection is kept, as after a signature that is wrong: nobody learns which tenants there are.
    expect(await answer).toMatchObject({ status: 401, close: false });
    expect(reads).toBe(1);
  });

  it("leave the place of a delivery in work to signed ones, whoever waits for a fresher keyring", async () => {
    let hold = false;
    const { deliver, receiver, log, clock } = sqliteBench({
      secrets: () => (hold ? deferred<Keyring>().promise : SECRET),
      maxBodyBytes: 1024 * 1024,
    });
    expect((await deliver(inbound())).status).toBe(200);
    hold = true;
    await clock.advance(2_000);
    const large = "x".repeat(1024 * 1024);
    const forged = Array.from({ length: 300 }, () => deliver(large, { secret: OLD }));
    await idleTurns();
    for (let index = 0; index < 200; index++) {
      expect((await deliver(inbound({ messageId: `m ${index}` }))).status).toBe(200);
    }
    // Bodies of 16 MiB wait for the read.
    const busy = { status: 503, body: '{"error":"unavailable"}' };
    for (const answer of await Promise.all(forged.slice(16))) expect(answer).toMatchObject(busy);
    expect(receiver.counters["refused:busy"]).toBe(300 - 16);
    expect(log.at(-1)?.message).toContain("Too many requests wait for look-ups of secrets.");
    expect(log.at(-1)?.fields).toMatchObject({ code: "busy", status: 503 });
  });

  it("does not ask for a request whose headers are malformed, or half missing", async () => {
    let asked = 0;
    const { deliver } = sqliteBench({
      secrets: async (): Promise<Keyring> => {
        asked++;
        return { inbound: "dangerouslyUnsigned", delivery: SECRET };
      },
    });
    const malformed = [
      { "x-service-timestamp": undefined },
      { "x-service-signature": undefined },
      { "x-service-timestamp": "yesterday" },
      { "x-service-signature": "junk" },
    ];
    for (const headers of malformed) expect((await deliver(inbound(), { headers })).status).toBe(401);
    expect((await deliver(inbound(), { at: 1_000_000_000_000 })).status).toBe(401);
    expect(asked).toBe(0);
    expect((await deliver(inbound(), { unsigned: true })).status).toBe(200);
    expect(asked).toBe(1);
  });

  it.each([
    ["rejects", () => Promise.reject(new Error("vault down: the-secret"))],
    [
      "throws",
      () => {
        throw new Error("vault down: the-secret");
      },
    ],
    ["gives junk", () => "short" as Keyring],
  ])("answers 503, never 401, when the provider %s (RCV-4)", async (_, secrets) => {
    const { deliver, log } = sqliteBench({ secrets });
    for (const wish of [{}, { secret: OLD }, { unsigned: true }]) {
      const answer = await deliver(inbound(), wish);
      expect(answer).toMatchObject({ status: 503, headers: { "retry-after": "30" } });
    }
    expect(JSON.stringify(log)).not.toContain("the-secret");
  });

  it("closes the connection with the 503 to a body that it has not read (RCV-4)", async () => {
    const { deliver } = memoryBench({ secrets: () => Promise.reject(new Error("vault down")) });
    let reads = 0;
    const readBody = (): BodyResult => {
      reads += 1;
      return { ok: false, reason: "truncated" };
    };
    for (const unsigned of [true, false])
      expect(await deliver(inbound(), { unsigned, readBody })).toMatchObject({ status: 503, close: true });
    expect(reads).toBe(0);
  });

  it("answers 503, never 401, to a signature of a secret that a failing provider may know by now (RCV-4, RCV-9)", async () => {
    let works = true;
    const { deliver, clock } = sqliteBench({
      secrets: async () => {
        if (!works) throw new Error("down");
        return SECRET;
      },
    });
    expect((await deliver(inbound())).status).toBe(200);
    works = false;
    await clock.advance(2_000);
    for (let second = 0; second < 20; second++) {
      expect((await deliver(inbound({ messageId: "new" }), { secret: NEXT })).status).toBe(503);
      expect((await deliver(inbound({ messageId: `m ${second}` }))).status).toBe(200);
      await clock.advance(1_000);
    }
    works = true;
    await clock.advance(10_000);
    expect((await deliver(inbound({ messageId: "new" }), { secret: NEXT })).status).toBe(401);
  });
});
