/**
 * What the inbox keeps of a delivery of each preset, under each of its options: the row, the headers, how it is found, how it is read again
 * after a restart, and what its replay from the quarantine stores. Two entries and two tenants get the same event, and none disturbs another.
 */
import { createHash, createHmac } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver, type HandlerContext, type InboxStore } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { Head } from "../../src/sources/headers.ts";
import {
  defineSource,
  github,
  hmacSource,
  type KeyringProvider,
  type SlackEvent,
  type SourceEvents,
  type StandardWebhooksEvent,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  type TwilioEvent,
  twilio,
  type WebhookSource,
} from "../../src/sources/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import {
  createFakeClock,
  fixtures,
  incomingOf,
  type SignedRequest,
  type SignedSource,
  type SourceRequestOptions,
  signedRequest,
  TEST_SECRETS,
} from "../../src/tools/testing/index.ts";
import { newFolder } from "../stores/sqlite-under-test.ts";

const NOW = 1_760_000_100_000;
/** When the fixtures say that they happened. */
const HAPPENED = 1_760_000_000_000;
const HOUR = 3_600_000;
const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const PLACES = ["one", "two"].flatMap((entry) => ["a", "b"].map((tenant) => ({ entry, tenant })));

interface Own {
  readonly secrets: KeyringProvider;
  /** Fails: what it is asked about is quarantined. */
  readonly lane?: () => never;
}

/** What is stored. The defaults are those of an event by itself whose provider signs no time and names no other. */
interface Stored {
  readonly order?: "position" | "arrival";
  /** The name of its lane. Default: it is by itself. */
  readonly lane?: string;
  readonly ownId: string;
  readonly sequence?: number;
  readonly type: string;
  readonly occurredAt?: number;
  readonly isTimed?: true;
  readonly reference?: string;
  readonly head?: Readonly<Record<string, string>>;
  /** As handlers receive it. Default: the body's JSON. */
  readonly event?: object;
}

interface Row {
  readonly source: (own: Own) => WebhookSource<SourceEvents>;
  readonly secretOf: (tenant: string) => string;
  readonly send: (secret: string) => SignedRequest;
  readonly url?: string | undefined;
  readonly stored: (sent: SignedRequest) => Stored;
}

const sha256 = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");
const ofBody = ({ body }: SignedRequest) => sha256(body);

/** A row of a preset whose requests `signedRequest()` signs. */
function row(
  preset: SignedSource,
  source: Row["source"],
  content: object | string,
  stored: Row["stored"],
  signing: Partial<SourceRequestOptions> & { readonly rename?: readonly [from: string, to: string] } = {},
): Row {
  const { rename: [from, to] = ["", ""], ...options } = signing;
  const secrets = new Map([
    ["a", TEST_SECRETS[preset]],
    [
      "b",
      preset === "standard-webhooks" ? "whsec_dGVuYW50IGIgMDEyMzQ1Njc4OWFiY2RlZjAxMjM0" : `${TEST_SECRETS[preset]} b`,
    ],
  ]);
  return {
    source,
    secretOf: (tenant) => secrets.get(tenant) ?? "",
    send(secret) {
      const request = signedRequest(content, { source: preset, timestamp: NOW, ...options, secret });
      const headers = Object.entries(request.headers).map(([name, value]) => [name.replace(from, to), value]);
      return { ...request, headers: Object.fromEntries(headers) };
    },
    url: options.url,
    stored,
  };
}

interface Acme {
  readonly id: string;
  readonly kind: string;
}
type Scheme = Parameters<typeof hmacSource<Acme>>[0];
const ACME = { id: "ev_1", kind: "paid", order: { no: 42 } };

/** A row of `hmacSource()`. @param sign - the headers of a body */
function acme(
  scheme: Omit<Scheme, "preset" | "lastRetryMs" | "header">,
  sign: (
    hmac: (hash: string, ...parts: readonly (string | Uint8Array)[]) => Buffer,
    body: Uint8Array,
  ) => SignedRequest["headers"],
  stored: Row["stored"],
): Row {
  const source = hmacSource<Acme>({ preset: "acme", lastRetryMs: 0, header: "x-signature", ...scheme });
  return {
    source: (own) => source(own),
    secretOf: (tenant) => `the secret of tenant ${tenant}`,
    send(secret) {
      const body = Buffer.from(JSON.stringify(ACME));
      const hmac = (hash: string, ...parts: readonly (string | Uint8Array)[]) =>
        parts.reduce((sum, part) => sum.update(part), createHmac(hash, secret)).digest();
      return { method: "POST", headers: sign(hmac, body), body };
    },
    stored,
  };
}

const DELIVERY = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
const PUSH = { "x-github-event": "push", "x-github-delivery": DELIVERY };
const WEBHOOK_ID = "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043";
const ORDER = {
  "x-shopify-topic": "orders/create",
  "x-shopify-webhook-id": WEBHOOK_ID,
  "x-shopify-shop-domain": "example.myshopify.com",
  ":proven": "x-shopify-",
};
const GID = "gid://shopify/Order/820982911946154508";
const SID = `SM${"0".repeat(31)}1`;
const TOKEN = "a1b2c3d4-0000-4000-8000-000000000001";
const HOOK = "https://example.com/webhooks";
const ofSignature = ({ headers }: SignedRequest) => sha256(headers["x-twilio-signature"] ?? "");
const signedHead = (sent: SignedRequest) => ({
  "i-twilio-idempotency-token": TOKEN,
  ":proven": ofSignature(sent),
});
const CALL = { CallSid: "CA1", CallStatus: "completed" };
const STREAMED = { type: "com.twilio.a" };
const STREAM_QUERY = `id=1&bodySHA256=${sha256(JSON.stringify(STREAMED))}`;

const HAPPENED_THEN = { occurredAt: HAPPENED, isTimed: true } as const;
const alone = (type: string, ownId: string, more: Partial<Stored> = {}): Stored => ({ type, ownId, ...more });
const inLane = (lane: string, ownId: string, type: string, more: Partial<Stored> = {}): Stored => ({
  ...alone(type, ownId, { order: "arrival", lane, ...more }),
});
const placed = (lane: string, ownId: string, type: string, sequence: number, more: Partial<Stored> = {}): Stored => ({
  ...inLane(lane, ownId, type, { ...more, order: "position", sequence }),
});

const ROWS: Readonly<Record<string, Row>> = {
  stripe: row(
    "stripe",
    (own) => stripe(own),
    fixtures.stripe(),
    () => placed("in_000001", "evt_000001", "invoice.paid", 1_000 * HAPPENED, HAPPENED_THEN),
  ),
  "stripe, of a connected account": row(
    "stripe",
    (own) => stripe(own),
    { ...fixtures.stripe({ id: "evt_2" }), account: "acct_1" },
    () => placed('["acct_1","test","in_000001"]', "evt_2", "invoice.paid", 1_000 * HAPPENED, HAPPENED_THEN),
  ),
  "stripe, each by itself": row(
    "stripe",
    (own) => stripe({ lane: null, ...own }),
    fixtures.stripe(),
    () => alone("invoice.paid", "evt_000001", { ...HAPPENED_THEN, reference: "in_000001" }),
  ),
  "stripe, a lane of one's own": row(
    "stripe",
    (own) => stripe({ lane: ({ type }) => type, ...own }),
    fixtures.stripe(),
    () => placed("invoice.paid", "evt_000001", "invoice.paid", 1_000 * HAPPENED, HAPPENED_THEN),
  ),
  github: row(
    "github",
    (own) => github(own),
    fixtures.github(),
    (sent) => alone("push", ofBody(sent), { reference: DELIVERY, head: PUSH }),
  ),
  "github, by the id": row(
    "github",
    (own) => github({ repeats: "id", ...own }),
    fixtures.github(),
    () => alone("push", `id:${DELIVERY}`, { reference: DELIVERY, head: PUSH }),
  ),
  "github, a lane of one's own": row(
    "github",
    (own) => github({ lane: ({ ref }) => `${ref}`, ...own }),
    fixtures.github(),
    (sent) => inLane("refs/heads/main", ofBody(sent), "push", { head: PUSH }),
  ),
  "github, a ping": row(
    "github",
    (own) => github(own),
    { zen: "Keep it logically awesome.", hook_id: 7 },
    (sent) =>
      alone("ping", `${ofBody(sent)}:${DELIVERY}`, {
        reference: DELIVERY,
        head: { ...PUSH, "x-github-event": "ping" },
      }),
    { type: "ping" },
  ),
  "github, a form": row(
    "github",
    (own) => github(own),
    `payload=${encodeURIComponent(JSON.stringify({ action: "opened" }))}`,
    (sent) => alone("push", ofBody(sent), { reference: DELIVERY, head: PUSH, event: { action: "opened" } }),
  ),
  shopify: row(
    "shopify",
    (own) => shopify(own),
    fixtures.shopify(),
    (sent) => placed(GID, ofBody(sent), "orders/create", 1_000 * HAPPENED, { occurredAt: HAPPENED, head: ORDER }),
  ),
  "shopify, each by itself": row(
    "shopify",
    (own) => shopify({ lane: null, ...own }),
    fixtures.shopify(),
    (sent) => alone("orders/create", ofBody(sent), { occurredAt: HAPPENED, reference: WEBHOOK_ID, head: ORDER }),
  ),
  slack: row(
    "slack",
    (own) => slack(own),
    fixtures.slack(),
    () => alone("app_mention", "Ev000001", { ...HAPPENED_THEN, reference: "Ev000001" }),
  ),
  "slack, a lane of one's own": row(
    "slack",
    (own) => slack<SlackEvent>({ lane: ({ team_id: team }) => `${team}`, ...own }),
    fixtures.slack(),
    () => inLane("T000001", "Ev000001", "app_mention", HAPPENED_THEN),
  ),
  "slack, a command": row(
    "slack",
    (own) => slack(own),
    "command=%2Fdeploy&text=now",
    (sent) => alone("/deploy", ofBody(sent), { isTimed: true, event: { command: "/deploy", text: "now" } }),
  ),
  "standard-webhooks": row(
    "standard-webhooks",
    (own) => standardWebhooks(own),
    fixtures.standardWebhooks(),
    () => alone("user.created", "msg_000001", { ...HAPPENED_THEN, head: { ":proven": "msg_000001" } }),
  ),
  "standard-webhooks, with the headers of svix": row(
    "standard-webhooks",
    (own) => standardWebhooks(own),
    fixtures.standardWebhooks(),
    () => alone("user.created", "msg_000001", { ...HAPPENED_THEN, head: { ":proven": "msg_000001" } }),
    { rename: ["webhook-", "svix-"] },
  ),
  "standard-webhooks, a lane of one's own": row(
    "standard-webhooks",
    (own) => standardWebhooks<StandardWebhooksEvent>({ lane: ({ data }) => `${(data as { id: string }).id}`, ...own }),
    fixtures.standardWebhooks(),
    () => inLane("user_000001", "msg_9", "user.created", { ...HAPPENED_THEN, head: { ":proven": "msg_9" } }),
    { id: "msg_9" },
  ),
  twilio: row(
    "twilio",
    (own) => twilio({ url: HOOK, ...own }),
    fixtures.twilio(),
    (sent) =>
      placed(SID, ofSignature(sent), "message.delivered", 5_000, { head: signedHead(sent), event: fixtures.twilio() }),
  ),
  "twilio, with a query": row(
    "twilio",
    (own) => twilio({ url: HOOK, ...own }),
    fixtures.twilio({ type: "queued" }),
    (sent) =>
      placed(SID, ofSignature(sent), "message.queued", 2_000, {
        head: { ":query": "customer=7", ...signedHead(sent) },
        event: fixtures.twilio({ type: "queued" }),
      }),
    { url: `${HOOK}?customer=7` },
  ),
  "twilio, a lane of one's own": row(
    "twilio",
    (own) => twilio<TwilioEvent>({ url: HOOK, lane: ({ To }) => `${To}`, ...own }),
    fixtures.twilio(),
    (sent) =>
      inLane("+15550000002", ofSignature(sent), "message.delivered", {
        head: signedHead(sent),
        event: fixtures.twilio(),
      }),
  ),
  "twilio, a call": row(
    "twilio",
    (own) => twilio({ url: HOOK, ...own }),
    CALL,
    (sent) =>
      alone("call.completed", ofSignature(sent), {
        ...{ reference: "CA1", head: signedHead(sent), event: CALL },
      }),
  ),
  "twilio, JSON": row(
    "twilio",
    (own) => twilio({ url: HOOK, ...own }),
    STREAMED,
    (sent) =>
      alone("com.twilio.a", ofBody(sent), { reference: TOKEN, head: { ":query": STREAM_QUERY, ...signedHead(sent) } }),
    { url: `${HOOK}?${STREAM_QUERY}` },
  ),
  "hmacSource, all in the body": acme(
    { identity: { body: "id" }, type: { body: "kind" }, reference: { body: "order.no" }, prefix: "sha256=" },
    (hmac, body) => ({ "x-signature": `sha256=${hmac("sha256", body).toString("hex")}`, "x-zone": "eu" }),
    () => alone("paid", "ev_1", { reference: "42" }),
  ),
  "hmacSource, all in headers": acme(
    {
      identity: { header: "x-id" },
      type: { header: "x-type" },
      reference: { header: "x-number" },
      keep: ["x-zone"],
      encoding: "base64",
      timestamp: "x-time",
      timestampUnit: "ms",
      signed: "{header:x-id}.{timestamp}.{body}",
    },
    (hmac, body) => ({
      "x-signature": hmac("sha256", `h_1.${NOW}.`, body).toString("base64"),
      ...{ "x-id": "h_1", "x-time": `${NOW}`, "x-type": "sold", "x-number": "n-1", "x-zone": "eu" },
    }),
    () =>
      alone("sold", "h_1", {
        ...{ reference: "n-1", head: { "x-id": "h_1", "x-type": "sold", "x-number": "n-1", "x-zone": "eu" } },
        isTimed: true,
      }),
  ),
  "hmacSource, of several items": acme(
    {
      identity: "digest",
      hash: "sha1",
      keep: ["x-zone"],
      signed: "{timestamp}.{body}",
      items: { separator: ",", signature: "v1", timestamp: "t" },
    },
    (hmac, body) => ({
      "x-signature": `t=${NOW / 1000},v1=${hmac("sha1", `${NOW / 1000}.`, body).toString("hex")}`,
      "x-zone": "eu",
    }),
    (sent) => alone("unknown", ofBody(sent), { isTimed: true, head: { "x-zone": "eu" } }),
  ),
  "defineSource, with the query": {
    ...acme(
      { identity: "digest" },
      (hmac, body) => ({ "x-signature": hmac("sha256", body).toString("hex") }),
      (sent) => placed("eu", ofBody(sent), "paid", 7_000, { occurredAt: HAPPENED, head: { ":query": "zone=eu" } }),
    ),
    url: "/hook?zone=eu",
    source: defineSource<Acme>({
      preset: "own",
      lastRetryMs: 0,
      keep: [":query"],
      order: "position",
      atIs: "time",
      verify(head, body, keys) {
        const signature = Buffer.from(head.header("x-signature") ?? "", "hex");
        const key = keys.find((each) => each.signed(signature, "sha256", body));
        return key === undefined ? { ok: false, code: "signature_mismatch" } : { ok: true, key, signedAt: null };
      },
      parse: (body) => ({ ok: true, event: JSON.parse(Buffer.from(body).toString()) }),
      place: ({ kind }, { digest }, kept) => ({
        ...{ type: kind, id: digest(), reference: "none in a lane", occurredAt: HAPPENED, at: 7 },
        lane: new URLSearchParams(kept.header(":query")).get("zone"),
      }),
    }),
  },
};

/** What a handler sees of an event. */
const seenBy = (
  event: object,
  ctx: Pick<HandlerContext, "meta" | "identity" | "timestamp" | "rawBody" | "header">,
  names: readonly string[],
) => ({
  ...{ event: { ...event }, identity: ctx.identity, at: ctx.timestamp, body: Buffer.from(ctx.rawBody).toString() },
  ...{ source: ctx.meta.source, tenant: ctx.meta.tenant, lane: ctx.meta.lane, ownId: ctx.meta.id },
  ...{ type: ctx.meta.eventType, trace: ctx.meta.traceparent, head: names.map((name) => ctx.header(name)) },
});

/** A receiver of two entries on `store`, whose secrets are those of a tenant; and what its handlers saw. */
function receiving<Tx>(
  { source, secretOf, send, stored, url }: Row,
  store: InboxStore<Tx>,
  clock = createFakeClock(NOW),
  more: Partial<Own> = {},
) {
  const secrets: KeyringProvider = ({ tenant = "" }) => ({ secret: secretOf(tenant), tenant });
  const make = () => source({ secrets, ...more });
  const receiver = createReceiver({ store, clock, logger: silentLogger, sources: { one: make(), two: make() } });
  onTestFinished(() => receiver.stop());
  const seen: unknown[] = [];
  const kept = Object.keys(stored(send(secretOf("a"))).head ?? {});
  for (const entry of ["one", "two"] as const)
    receiver.source(entry).onAny((event, ctx) => void seen.push(seenBy(event, ctx, [...kept, "content-type"])));
  const deliver = async () => {
    const statuses: number[] = [];
    for (const { entry, tenant } of PLACES) {
      const sent = send(secretOf(tenant));
      const incoming = incomingOf({ ...sent, headers: { ...sent.headers, traceparent: TRACE } });
      const answer = await receiver.source(entry as "one").handle({ ...incoming, tenant, url });
      statuses.push(answer.status);
    }
    return statuses;
  };
  return { receiver, clock, seen, deliver };
}

/** What the table says of each place: its row, and what its handler sees. */
function wantedOf({ send, secretOf, stored }: Row) {
  return PLACES.map(({ entry, tenant }) => {
    const sent = send(secretOf(tenant));
    const {
      order = null,
      lane = null,
      ownId,
      sequence = 0,
      type,
      occurredAt = NOW,
      isTimed = false,
      reference,
      head,
      event,
    } = stored(sent);
    const body = Buffer.from(sent.body).toString();
    const common = { source: entry, tenant, lane, ownId, type, trace: TRACE, body };
    return {
      row: {
        ...{ ...common, order, sequence: order === "arrival" ? "its id" : sequence, occurredAt, signedAt: NOW },
        ...{ untimed: !isTimed, digest: sha256(sent.body), reference: reference ?? null, head: head ?? null },
        ...{ peer: null, conflict: false, late: false, forced: false, duplicates: 0 },
      },
      seen: {
        ...{ ...common, event: event ?? JSON.parse(body), at: NOW, head: [...Object.values(head ?? {}), undefined] },
        identity: sha256(JSON.stringify([entry, tenant, ownId])),
      },
    };
  });
}

type Inbox = ReturnType<typeof receiving>["receiver"]["inbox"];

/** The rows of an inbox, in the order of acceptance. */
async function rowsOf(inbox: Inbox) {
  const { items } = await inbox.find({ order: "oldest" });
  return Promise.all(
    items.map(async ({ id, lane, ...event }) => {
      const body = (await inbox.bodies([id])).get(id);
      const { source, tenant, name, order } = lane;
      const record = await inbox.lane(name === null ? { source, tenant, id: event.ownId ?? "" } : lane);
      return {
        ...{ source, tenant, lane: name, order, ownId: event.ownId, type: event.eventType, trace: event.trace },
        ...{ body: Buffer.from(body?.raw ?? "").toString() },
        ...{ sequence: order === "arrival" && event.sequence === id ? "its id" : event.sequence },
        ...{ occurredAt: event.occurredAt, signedAt: event.signedAt, untimed: event.untimed },
        ...{ digest: Buffer.from(event.digest).toString("hex"), reference: record?.externalReference },
        ...{ head: body?.head === null ? null : JSON.parse(body?.head ?? '"none"'), peer: record?.peer },
        ...{ conflict: event.conflict, late: event.late, forced: event.forced, duplicates: event.duplicates },
      };
    }),
  );
}

async function newFile(): Promise<() => InboxStore<never>> {
  const folder = await newFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  return () => sqliteStore(join(folder, "inbox.db"), { minFreeBytes: 0 }) as unknown as InboxStore<never>;
}

const OK = [200, 200, 200, 200];

describe.each(Object.entries(ROWS))("%s", (_, row) => {
  const wanted = wantedOf(row);

  it("is stored for each entry and tenant, found, and read again after a restart", async () => {
    const open = await newFile();
    const { receiver, clock, deliver } = receiving(row, open());
    expect(await deliver()).toEqual(OK);
    const { inbox } = receiver;
    expect(await rowsOf(inbox)).toEqual(wanted.map((one) => one.row));
    const ownerOf = ({ source, tenant }: { source: string; tenant: string | null }) => `${source}:${tenant}`;
    const owners = async (query: object) =>
      (await inbox.find({ order: "oldest", ...query })).items.map((event) => ownerOf(event.lane));
    const all = wanted.map((one) => ownerOf(one.row));
    const { lane, ownId, reference } = wanted[0]!.row;
    // Where a signature is the id, each tenant has its own.
    const same = wanted.filter((one) => one.row.ownId === ownId).map((one) => ownerOf(one.row));
    expect(await owners({ lane: lane ?? "nobody's" })).toEqual(lane === null ? [] : all);
    expect(await owners({ id: ownId })).toEqual(same);
    expect(await owners({ externalReference: reference ?? "nobody's" })).toEqual(reference === null ? [] : all);
    expect(await owners({ source: "two" })).toEqual(["two:a", "two:b"]);
    expect(await owners({ tenant: "a" })).toEqual(["one:a", "two:a"]);
    expect(await owners({ source: "two", tenant: "a" })).toEqual(["two:a"]);
    expect(await owners({ tenant: null })).toEqual([]);
    expect(await deliver()).toEqual(OK);
    expect((await rowsOf(inbox)).map(({ duplicates, conflict }) => [duplicates, conflict])).toEqual(
      Array(4).fill([1, false]),
    );
    await receiver.stop();

    await clock.advance(HOUR);
    const again = receiving(row, open(), clock);
    expect(await again.receiver.drain()).toEqual({ claimed: 4, complete: true });
    expect(again.seen).toEqual(wanted.map((one) => one.seen));
  });

  it("is handled at once as after a restart", async () => {
    const open = await newFile();
    const { receiver, clock, seen, deliver } = receiving(row, open());
    await receiver.start();
    expect(await deliver()).toEqual(OK);
    for (let turn = 0; turn < 100 && seen.length < 4; turn++) await clock.advance(0);
    expect(seen).toEqual(wanted.map((one) => one.seen));
  });

  it("is quarantined where its source fails, and its replay stores and passes the same", async () => {
    const open = await newFile();
    const lane = () => {
      throw new Error("a bug of the application");
    };
    const broken = receiving(row, open(), createFakeClock(NOW), { lane });
    expect([await broken.deliver(), await broken.deliver()]).toEqual([OK, OK]);
    const { items } = await broken.receiver.inbox.findQuarantined();
    const held = items.toReversed().map(({ source, tenant, kinds, reason, slot, signedAt, untimed, trace }) => {
      return { source, tenant, kinds, reason, slot, signedAt, untimed, trace };
    });
    const common = { kinds: [], reason: "source_failed", slot: "current", signedAt: NOW, trace: TRACE };
    expect(held).toEqual(
      wanted.map(({ row: { source, tenant, untimed } }) => ({ ...common, source, tenant, untimed })),
    );
    expect(new Set(items.map(({ signer }) => signer)).size).toBe(4);
    await broken.receiver.stop();

    await broken.clock.advance(HOUR);
    const { receiver, seen } = receiving(row, open(), broken.clock);
    for (const { id } of items.toReversed())
      expect(await receiver.inbox.replayQuarantined(id)).toMatchObject({ ok: true });
    expect(await rowsOf(receiver.inbox)).toEqual(wanted.map((one) => one.row));
    await receiver.drain();
    expect(seen).toEqual(wanted.map((one) => one.seen));
  });
});

const MIB = 1024 * 1024;
const scheme = { preset: "acme", header: "x-signature", identity: "digest", lastRetryMs: 6 * HOUR } as const;
const told = { ...scheme, maxBodyBytes: 2_048, answerMs: 7_000, accepted: { status: 202 }, keep: [":query", "x-zone"] };
const connect = (source: WebhookSource<SourceEvents>) =>
  source.connect("one", { clock: createFakeClock(NOW), logger: silentLogger });

describe("what a receiver knows of a source", () => {
  const secrets = "a secret of some characters";
  const twiml = { body: "<Response/>", contentType: "text/xml" };

  it.each<
    readonly [
      string,
      WebhookSource<SourceEvents>,
      readonly [number, number, number, object | null, string | null, number],
    ]
  >([
    ["stripe", stripe({ secrets }), [MIB, 10_000, 96 * HOUR, null, "position", 0]],
    ["stripe, held back", stripe({ secrets, holdBackMs: 900 }), [MIB, 10_000, 96 * HOUR, null, "position", 900]],
    ["stripe, each by itself", stripe({ secrets, lane: null }), [MIB, 10_000, 96 * HOUR, null, null, 0]],
    ["github", github({ secrets }), [25 * MIB, 10_000, 72 * HOUR, null, null, 0]],
    ["github, a limit", github({ secrets, maxBodyBytes: 4_096 }), [4_096, 10_000, 72 * HOUR, null, null, 0]],
    ["shopify", shopify({ secrets }), [MIB, 5_000, 48 * HOUR, null, "position", 0]],
    ["slack", slack({ secrets }), [MIB, 3_000, 25 * HOUR, {}, null, 0]],
    ["standard-webhooks", standardWebhooks({ secrets: "c2VjcmV0" }), [MIB, 10_000, 120 * HOUR, null, null, 0]],
    ["twilio", twilio({ secrets, url: HOOK }), [MIB, 15_000, 24 * HOUR, twiml, "position", 0]],
    ["hmacSource", hmacSource(scheme)({ secrets }), [MIB, 10_000, 6 * HOUR, null, null, 0]],
    ["hmacSource, all given", hmacSource(told)({ secrets }), [2_048, 7_000, 6 * HOUR, { status: 202 }, null, 0]],
    [
      "hmacSource, a long tolerance",
      hmacSource(told)({ secrets, toleranceMs: { past: 5 * HOUR, future: 4 * HOUR } }),
      [2_048, 7_000, 9 * HOUR, { status: 202 }, null, 0],
    ],
  ])("its limits and its answer: %s", (_, source, facts) => {
    const { maxBodyBytes, answerMs, accepted, types } = connect(source);
    expect([maxBodyBytes, answerMs, source.replayMs, accepted, types.order, types.holdBackMs]).toEqual(facts);
  });

  it.each([
    [{}, [300, 301], [300, 301]],
    [{ past: 60_000 }, [60, 61], [300, 301]],
    [{ future: 2_000 }, [300, 301], [2, 3]],
  ])("how old and how far ahead a signed time may be: %o", async (toleranceMs, past, future) => {
    const source = connect(stripe({ secrets: TEST_SECRETS.stripe, toleranceMs }));
    const verdicts = await Promise.all(
      [...past.map((age) => -age), ...future].map(async (seconds) => {
        const { headers, body } = signedRequest("{}", { source: "stripe", timestamp: NOW + 1_000 * seconds });
        const match = source.match(new Head({ headers }), body, (await source.keyrings.read({})).keys, NOW);
        return match?.ok === false ? match.code : "ok";
      }),
    );
    expect(verdicts).toEqual(["ok", "timestamp_too_old", "ok", "timestamp_in_future"]);
  });

  it("how much it keeps of a header and of the query, for the first delivery as for all later ones", async () => {
    const body = Buffer.from("{}");
    const headers = {
      "x-signature": createHmac("sha256", secrets).update(body).digest("hex"),
      "x-zone": "z".repeat(2_000),
    };
    const seen: (readonly (number | undefined)[])[] = [];
    const filter = (_event: object, head: { header(name: string): string | undefined }) => {
      seen.push(["x-zone", ":query", "x-signature"].map((name) => head.header(name)?.length));
      return true;
    };
    const source = connect(hmacSource(told)({ secrets, filter }));
    const sent = new Head({ headers, url: `/hook?${"q".repeat(9_000)}#x` });
    const match = source.match(sent, body, (await source.keyrings.read({ tenant: "a" })).keys, NOW);
    if (!match?.ok) throw new Error("refused");
    const reading = source.read(sent, match, body, { trace: null, now: NOW });
    if (reading?.kind !== "event") throw new Error("not an event");
    const { head, lane } = reading.toStore();
    expect(seen).toEqual([[1_024, 8_192, undefined]]);
    expect(JSON.parse(head ?? "null")).toEqual({ ":query": "q".repeat(8_192), "x-zone": "z".repeat(1_024) });
    // With one secret for all, a tenant is only a name.
    expect([lane.source, lane.tenant]).toEqual(["one", null]);
  });
});
