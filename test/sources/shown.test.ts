/** What the log, the inbox and a viewer with the right "read" see of an event of each source, in its own process and in another. */
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { createReceiver, type InboxStore, openInbox } from "../../src/index.ts";
import type { InboxOperator } from "../../src/receiver/operator.ts";
import {
  defineSource,
  github,
  hmacSource,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  twilio,
} from "../../src/sources/index.ts";
import type { SourceEvents, WebhookSource } from "../../src/sources/source.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { inboxCommand } from "../../src/tools/cli/inbox/command.ts";
import { createInspector } from "../../src/tools/inspector/index.ts";
import {
  createFakeClock,
  incomingOf,
  type SignedRequest,
  type SignedSource,
  signedRequest,
  TEST_SECRETS,
} from "../../src/tools/testing/index.ts";
import { runHere } from "../tools/cli/here.ts";
import { mounted } from "../tools/inspector/support/mounted.ts";

const NOW = 1_760_000_000_000;
const folder = mkdtempSync(join(tmpdir(), "oncehook-shown-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;

/** What no event of these may show: keys, numbers, texts, and what a person could write where a word is expected. */
const HIDDEN = {
  ...{
    "alice@example.com": { admin: true },
    carolkey: 1,
    otp: 482_913,
    code: "Ab9-Secret-Coupon",
    login_name: "alice.smith",
  },
  ...{ note: "Meet me at the bridge", nested: [[{ token: "tok_9f8a7" }], ["deep text"]], phone: "+15550100002" },
};
const MARKS = /alice|carolkey|482.?913|Ab9|bridge|9f8a7|deep text|5550100002|bob@|deadbeef/;

interface Case {
  readonly source: WebhookSource<SourceEvents>;
  readonly request: SignedRequest;
  /** The masked body. */
  readonly seen: unknown;
  /** The text that a viewer sees when an error quotes the event. */
  readonly named: readonly string[];
}

function signed(source: SignedSource, content: object, more: { type?: string; id?: string; url?: string } = {}) {
  return signedRequest(content, { source, timestamp: NOW, ...more });
}

const KEPT = { "x-user-email": "bob@example.com", "x-reset-link": "https://x.example/reset?t=deadbeefcafe" };

function acmeRequest(event: object): SignedRequest {
  const body = Buffer.from(JSON.stringify(event));
  const signature = createHmac("sha256", "acme-secret").update(body).digest("hex");
  return { method: "POST", headers: { "x-sig": signature, ...KEPT }, body };
}

const scheme = {
  preset: "acme",
  header: "x-sig",
  lastRetryMs: 0,
  identity: "digest",
  keep: Object.keys(KEPT),
} as const;
const own = defineSource<{ readonly id: string }>({
  preset: "own",
  lastRetryMs: 0,
  keep: Object.keys(KEPT),
  verify: (_head, _body, [key]) =>
    key === undefined ? { ok: false, code: "no_key" } : { ok: true, key, signedAt: null },
  parse: (body) => ({ ok: true, event: JSON.parse(Buffer.from(body).toString()) }),
  place: (_event, { digest }) => ({ type: "login", id: digest() }),
});

const CASES: Readonly<Record<string, Case>> = {
  "a source that names nothing": {
    source: own({ secrets: "acme-secret" }),
    request: acmeRequest({ id: "carolkey", ...HIDDEN }),
    seen: { "[hidden]": "9 fields" },
    named: ["login"],
  },
  hmacSource: {
    source: hmacSource({ ...scheme, type: { body: "type" } })({ secrets: "acme-secret" }),
    request: acmeRequest({ type: "login", ...HIDDEN, messageId: "bearer.tok_9f8a7" }),
    seen: { type: "login", "[hidden]": "9 fields" },
    named: ["login"],
  },
  "hmacSource with shows": {
    source: hmacSource({ ...scheme, type: { body: "type" }, shows: ["user.id", "items.id"] })({
      secrets: "acme-secret",
    }),
    request: acmeRequest({ type: "login", user: { id: 471_100, ...HIDDEN }, items: [{ id: "it_1", ...HIDDEN }] }),
    seen: {
      ...{ type: "login", user: { id: 471_100, "[hidden]": "8 fields" } },
      items: [{ id: "it_1", "[hidden]": "8 fields" }],
    },
    named: ["login", "471100", "it_1"],
  },
  stripe: {
    source: stripe({ secrets: TEST_SECRETS.stripe, lane: null }),
    request: signed("stripe", {
      ...{ id: "evt_1NG8Du2eZvKYlo2CUI79vXWy", type: "invoice.paid", created: 1_760_000_000 },
      data: { object: { id: "in_1NG8Du2eZ", customer: "cus_9s6XKzkNRiz8i3", status: "paid", ...HIDDEN } },
    }),
    seen: {
      ...{ id: "evt_1NG8Du2eZvKYlo2CUI79vXWy", type: "invoice.paid", created: 1_760_000_000 },
      data: { object: { id: "in_1NG8Du2eZ", customer: "cus_9s6XKzkNRiz8i3", status: "paid", "[hidden]": "8 fields" } },
    },
    named: ["evt_1NG8Du2eZvKYlo2CUI79vXWy", "invoice.paid", "in_1NG8Du2eZ", "cus_9s6XKzkNRiz8i3"],
  },
  github: {
    source: github({ secrets: TEST_SECRETS.github }),
    request: signed(
      "github",
      { action: "opened", repository: { id: 1_296_269, ...HIDDEN }, ...HIDDEN },
      { type: "issues", id: "d-1" },
    ),
    seen: { action: "opened", repository: { id: 1_296_269, "[hidden]": "8 fields" }, "[hidden]": "8 fields" },
    named: ["issues", "opened"],
  },
  shopify: {
    source: shopify({ secrets: TEST_SECRETS.shopify, lane: null }),
    request: signed(
      "shopify",
      { id: 8_209_829_119, admin_graphql_api_id: "gid://shopify/Order/8209829119", ...HIDDEN },
      { type: "orders/create", id: "d-2" },
    ),
    seen: { id: 8_209_829_119, admin_graphql_api_id: "gid://shopify/Order/8209829119", "[hidden]": "8 fields" },
    named: ["orders/create", "gid://shopify/Order/8209829119"],
  },
  slack: {
    source: slack({ secrets: TEST_SECRETS.slack }),
    request: signed("slack", {
      type: "event_callback",
      event_id: "Ev08MFMKH6",
      event: { type: "app_mention", ...HIDDEN },
    }),
    seen: { type: "event_callback", event_id: "Ev08MFMKH6", event: { type: "app_mention", "[hidden]": "8 fields" } },
    named: ["app_mention", "Ev08MFMKH6"],
  },
  "standard-webhooks": {
    source: standardWebhooks({ secrets: TEST_SECRETS["standard-webhooks"] }),
    request: signed(
      "standard-webhooks",
      { type: "user.created", data: { id: "user_29w83", ...HIDDEN } },
      { id: "msg_2a" },
    ),
    seen: { type: "user.created", data: { id: "user_29w83", "[hidden]": "8 fields" } },
    named: ["user.created", "user_29w83", "msg_2a"],
  },
  twilio: {
    source: twilio({ secrets: TEST_SECRETS.twilio, url: "https://example.com/webhooks", lane: null }),
    request: signed("twilio", {
      ...{ MessageSid: `SM${"0a".repeat(16)}`, MessageStatus: "delivered", Body: "Meet me at the bridge" },
      ...{ To: "+15550100002", "alice@example.com": "Ab9-Secret-Coupon" },
    }),
    seen: expect.stringMatching(/^\[\d+ bytes that are not JSON\]$/),
    named: [`SM${"0a".repeat(16)}`, "message.delivered"],
  },
};

function place(): { readonly path: string; readonly open: () => InboxStore<never> } {
  const path = join(folder, `${++files}.db`);
  return { path, open: () => sqliteStore(path, { minFreeBytes: 0 }) as unknown as InboxStore<never> };
}

/** Everything that `read` shows of the first event. */
async function inspectedBy(inbox: InboxOperator) {
  const { origin, ask } = await mounted((own) =>
    createInspector({ inbox, authorize: () => "read", origins: [own], clock: createFakeClock(NOW) }),
  );
  const answers = await Promise.all(["lanes/1", "groups"].map((what) => ask({ url: `/inspector/api/${what}` })));
  expect([origin.startsWith("http"), ...answers.map(({ status }) => status)]).toEqual([true, 200, 200]);
  const [lane, groups] = answers.map((answer) => answer.json());
  const { events } = lane as { readonly events: readonly { readonly body: { readonly masked: unknown } }[] };
  return { masked: events[0]?.body.masked, all: JSON.stringify([lane, groups]) };
}

describe.each(Object.entries(CASES))("%s", (name, { source, request, seen, named }) => {
  it("shows the fields that it names, and nothing else, in logs and to viewers in any process", async () => {
    const { path, open } = place();
    const log: string[] = [];
    const line = (fields: object, message: string) => void log.push(JSON.stringify([fields, message]));
    const logger = { debug: line, info: line, warn: line, error: line };
    const receiver = createReceiver<never, SourceEvents>({
      store: open(),
      source,
      logger,
      maxAttempts: 1,
      clock: createFakeClock(NOW),
    });
    receiver.onAny((event, ctx) => {
      const headers = Object.keys(KEPT).map((header) => ctx.header(header));
      const said = [ctx.meta.eventType, ...named, ...headers, ...leavesOf(event), JSON.stringify(event)].join(" | ");
      const cause = new Error(`for ${leavesOf(event).reverse().join(", ")}`);
      throw Object.assign(new Error(said.slice(0, 1_900), { cause }), { code: "Ab9-Secret-Coupon" });
    });
    onTestFinished(() => receiver.stop({ timeoutMs: 100 }));
    await receiver.start();
    expect((await receiver.handle(incomingOf(request))).status).toBe(200);
    await vi.waitFor(() => expect(log.join("\n")).toContain("An event became a dead letter."), { timeout: 5_000 });
    const [event] = (await receiver.inbox.find()).items;
    const own = await inspectedBy(receiver.inbox);
    expect(own.masked).toEqual(seen);
    for (const said of [event?.error ?? "", log.join("\n")]) for (const id of named) expect(said).toContain(id);
    await receiver.stop();

    const inbox = await openInbox({ store: open() });
    onTestFinished(() => inbox.close());
    const elsewhere = await inspectedBy(inbox);
    expect(elsewhere.masked).toEqual(seen);
    await inbox.close();
    const shown = await runHere(inboxCommand(), ["show", "1", "--json", "--store", path]);
    expect([shown.code, shown.errors]).toEqual([0, ""]);
    expect(JSON.parse(shown.output)).toMatchObject({ events: [{ body: { masked: seen } }] });
    for (const said of [event?.error, event?.errorCode, ...log, own.all, elsewhere.all, shown.output])
      expect(said, `${name} shows it`).not.toMatch(MARKS);
  });
});

describe("inbox.groupByError()", () => {
  it("counts one mistake once, whether an event contains the number in its message or not", async () => {
    const source = hmacSource(scheme)({ secrets: "acme-secret" });
    const store = memoryStore({ volatile: true });
    const receiver = createReceiver({ store, source, maxAttempts: 1, clock: createFakeClock(NOW), logger: silent });
    onTestFinished(() => receiver.stop());
    const orders = [7, 999, 1_000, 4_711, 471_100];
    receiver.onAny((event) => {
      throw new Error(`No order ${event.order} of ${event.person}`);
    });
    for (const order of orders) await receiver.handle(incomingOf(acmeRequest({ order, person: `Person ${order}` })));
    await receiver.handle(incomingOf(acmeRequest({ order: 4_712, person: "Somebody", amount: 4_712 })));
    await receiver.drain();
    expect(await receiver.inbox.groupByError()).toMatchObject([{ error: "No order # of [text]", count: 6 }]);
  });
});

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** Keys and values, as an error may quote them. */
function leavesOf(value: unknown): unknown[] {
  if (typeof value !== "object" || value === null) return [value];
  const entries = Object.entries(value);
  return entries.flatMap(([key, item]) => [...(Array.isArray(value) ? [] : [key]), ...leavesOf(item)]);
}
