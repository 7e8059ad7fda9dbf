/** Two owners with equal ids: the events of one are never late, duplicate or held back because of the other's. */
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver, type SourceEvents, type WebhookSource } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { defineSource, github, shopify, slack, standardWebhooks, stripe, twilio } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { fixtures, incomingOf, type SignedSource, signedRequest, TEST_SECRETS } from "../../src/tools/testing/index.ts";

const SECOND = 1_760_000_000;
const URL = "https://example.com/webhooks";

/** A receiver of one source, and a function that signs and sends an event to it. */
function receiving(source: WebhookSource<SourceEvents>, signed: SignedSource) {
  const receiver = createReceiver({ store: memoryStore({ volatile: true }), source, logger: silentLogger });
  onTestFinished(() => receiver.stop());
  const seen: string[] = [];
  receiver.onAny((_event, ctx) => void seen.push(Buffer.from(ctx.rawBody).toString()));
  if (["stripe", "shopify", "twilio"].includes(source.preset)) receiver.onLate(() => void seen.push("late"));
  const send = async (event: object, id?: string) => {
    const request = signedRequest(event, { source: signed, url: URL, ...(id !== undefined && { id }) });
    await receiver.handle(incomingOf(request));
    await receiver.drain({ budgetMs: 500 });
  };
  return { receiver, seen, send };
}

interface Owner {
  readonly account?: string | null;
  readonly context?: string | null;
  readonly livemode?: boolean;
  /** The object's id. */
  readonly id: string;
}

const stripeEvent = (id: string, second: number, { id: object, ...owner }: Owner) => ({
  ...{ id, object: "event", type: "product.updated", created: SECOND + second, livemode: true },
  ...owner,
  data: { object: { id: object, object: "product" } },
});

describe("stripe()", () => {
  const [a, b] = [
    { account: "acct_A", id: "gold" },
    { account: "acct_B", id: "gold" },
  ];
  it.each<[string, Owner, Owner]>([
    ["two connected accounts", a, b],
    ["a connected account and one's own", a, { id: "gold" }],
    ["two accounts of an organization", { context: "acct_A", id: "gold" }, { context: "acct_B", id: "gold" }],
    ["an account's live and test mode", { ...a, livemode: true }, { ...a, livemode: false }],
    [
      "texts that are equal one after the other",
      { account: "acct_1", id: "2gold" },
      { account: "acct_12", id: "gold" },
    ],
    ["an id with the separators of a list", { account: "acct_A", id: 'x","y' }, { account: 'acct_A","x', id: "y" }],
    ["one's own object named as another's lane", { id: '["acct_A","live","gold"]' }, a],
    ["one's own object named as a list of one", { id: '["gold"]' }, { id: "gold" }],
  ])("keeps apart %s", async (_, one, other) => {
    for (const [newer, older] of [
      [one, other],
      [other, one],
    ] as const) {
      const { receiver, seen, send } = receiving(stripe({ secrets: TEST_SECRETS.stripe }), "stripe");
      await send(stripeEvent("evt_newer", 1, newer));
      await send(stripeEvent("evt_older", 0, older));
      expect(seen.map((body) => (JSON.parse(body) as { id: string }).id)).toEqual(["evt_newer", "evt_older"]);
      expect((await receiver.inbox.findLanes()).items).toHaveLength(2);
    }
  });

  it("does not hold an account's events behind another one's that fails", async () => {
    const { receiver, send } = receiving(stripe({ secrets: TEST_SECRETS.stripe }), "stripe");
    const seen: string[] = [];
    receiver.onAny((event) => {
      const { account, id } = event as { account: string; id: string };
      if (account === "acct_B") throw new Error("fails");
      seen.push(id);
    });
    await send(stripeEvent("evt_B", -100, b));
    for (const n of [1, 2, 3]) await send(stripeEvent(`evt_A${n}`, n, a));
    expect(seen).toEqual(["evt_A1", "evt_A2", "evt_A3"]);
  });

  it.each<[string, Owner, Owner]>([
    ["one account", a, a],
    ["an account's name alone, and with its context", a, { ...a, context: "org_1/acct_A" }],
    ["no account, and null", { id: "gold" }, { account: null, context: null, id: "gold" }],
    ["no account in live and in test mode: an endpoint has one mode", { id: "gold" }, { id: "gold", livemode: false }],
  ])("keeps in one lane %s", async (_, one, other) => {
    const { receiver, send } = receiving(stripe({ secrets: TEST_SECRETS.stripe }), "stripe");
    await send(stripeEvent("evt_1", 0, one));
    await send(stripeEvent("evt_2", 1, other));
    expect((await receiver.inbox.findLanes()).items).toHaveLength(1);
  });

  it("names the lane of your own objects by their id alone", async () => {
    const { receiver, send } = receiving(stripe({ secrets: TEST_SECRETS.stripe }), "stripe");
    await send(stripeEvent("evt_1", 0, { id: "gold" }));
    await send(stripeEvent("evt_2", 0, a));
    const names = (await receiver.inbox.findLanes()).items.map(({ key }) => key.name);
    expect(names).toEqual(['["acct_A","live","gold"]', "gold"]);
  });
});

describe("ids that are unique only within an owner", () => {
  const sid = (letter: string) => `SM${letter.repeat(32)}`;
  const shop = (n: number, at: string) => ({
    ...{ id: n, admin_graphql_api_id: `gid://shopify/Order/${n}`, updated_at: at, order_number: 1001, name: "#1001" },
  });
  const push = (owner: string, at: string) => ({ ...fixtures.github(), repository: { full_name: owner }, at });
  const mention = (team: string, id: string) => ({
    ...fixtures.slack({ id }),
    team_id: team,
    event: { type: "app_mention", channel: "C1", user: "U1", ts: "1.1" },
  });
  it.each<[SignedSource, () => WebhookSource<never>, object, object]>([
    [
      "shopify",
      () => shopify({ secrets: TEST_SECRETS.shopify }) as never,
      shop(1, "2026-01-02T00:00:00Z"),
      shop(2, "2026-01-01T00:00:00Z"),
    ],
    [
      // Without an id of Shopify's own: a number may be that of a product, of a customer, and of another shop.
      "shopify",
      () => shopify({ secrets: TEST_SECRETS.shopify }) as never,
      { id: 1, updated_at: "2026-01-02T00:00:00Z", title: "a product" },
      { id: 1, updated_at: "2026-01-01T00:00:00Z", email: "a customer" },
    ],
    [
      "twilio",
      () => twilio({ secrets: TEST_SECRETS.twilio, url: URL }) as never,
      { AccountSid: "AC1", MessageSid: sid("a"), MessageStatus: "delivered", To: "+1" },
      { AccountSid: "AC2", MessageSid: sid("b"), MessageStatus: "queued", To: "+1" },
    ],
    ["github", () => github({ secrets: TEST_SECRETS.github }) as never, push("a/repo", "2"), push("b/repo", "1")],
    ["slack", () => slack({ secrets: TEST_SECRETS.slack }) as never, mention("T1", "Ev1"), mention("T2", "Ev2")],
    [
      "standard-webhooks",
      () => standardWebhooks({ secrets: TEST_SECRETS["standard-webhooks"] }) as never,
      { type: "a", org: 1, data: { id: "user_1" } },
      { type: "a", org: 2, data: { id: "user_1" } },
    ],
  ])("make nothing of %s late, duplicate or wait", async (name, source, newer, older) => {
    const { seen, send } = receiving(source(), name);
    await send(newer, "id-1");
    await send(older, "id-2");
    expect(seen).toHaveLength(2);
    expect(seen).not.toContain("late");
  });
});

describe("the option lane, with a position that says something within the source's own lane only", () => {
  it("handles two messages of twilio() in one lane as they come", async () => {
    const source = twilio({ secrets: TEST_SECRETS.twilio, url: URL, lane: ({ To }) => `${To}` });
    const receiver = createReceiver({ store: memoryStore({ volatile: true }), source, logger: silentLogger });
    onTestFinished(() => receiver.stop());
    const seen: string[] = [];
    receiver.onAny((event, ctx) => void seen.push(`${event.MessageStatus} ${ctx.meta.lane}`));
    expect(() => receiver.onLate(() => {})).toThrow(/can be late/);
    for (const letter of ["a", "b"])
      for (const type of ["queued", "sent", "delivered"]) {
        const form = fixtures.twilio({ id: `SM${letter.repeat(32)}`, type });
        await receiver.handle(incomingOf(signedRequest(form, { source: "twilio", url: URL })));
        await receiver.drain();
      }
    const statuses = ["queued", "sent", "delivered"].map((status) => `${status} ${fixtures.twilio().To}`);
    expect(seen).toEqual([...statuses, ...statuses]);
    expect((await receiver.inbox.findLanes()).items.map(({ key }) => key.order)).toEqual(["arrival"]);
  });

  it("goes on by time where the position is one", async () => {
    const source = stripe({ secrets: TEST_SECRETS.stripe, lane: () => "all" });
    const { seen, send } = receiving(source, "stripe");
    await send(stripeEvent("evt_newer", 1, { id: "gold" }));
    await send(stripeEvent("evt_older", 0, { id: "silver" }));
    expect(seen).toHaveLength(2);
    expect(seen[1]).toBe("late");
  });

  const acme = (more: object) =>
    defineSource<{ object: string; version: number }>({
      preset: "acme",
      lastRetryMs: 0,
      verify: (_head, _body, [key]) =>
        key === undefined ? { ok: false, code: "no_key" } : { ok: true, key, signedAt: null },
      parse: (body) => ({ ok: true, event: JSON.parse(Buffer.from(body).toString()) }),
      order: "position",
      place: ({ object, version }) => ({ type: "any", id: `${object}:${version}`, lane: object, at: version }),
      ...more,
    });

  it.each([
    ["a rank", {}, "arrival"],
    ["said to be a rank", { atIs: "rank" }, "arrival"],
    ["a time", { atIs: "time" }, "position"],
  ])("is in the order that the definition allows: %s", async (_, more, order) => {
    const secrets = "a secret of many characters";
    const source = acme(more)({ secrets, lane: () => "all" });
    const receiver = createReceiver({ store: memoryStore({ volatile: true }), source, logger: silentLogger });
    onTestFinished(() => receiver.stop());
    receiver.onAny(() => {});
    if (order === "position") receiver.onLate(() => {});
    const bytes = Buffer.from('{"object":"a","version":7}');
    await receiver.handle({ method: "POST", headers: {}, readBody: () => ({ ok: true, bytes }) });
    expect((await receiver.inbox.findLanes()).items.map(({ key }) => key.order)).toEqual([order]);
    const holding = () => acme(more)({ secrets, lane: () => "all", holdBackMs: 1 });
    if (order === "arrival") expect(holding).toThrow(/holdBackMs/);
    else expect(holding).not.toThrow();
  });

  it("refuses a rank where nothing is in order by it, and another word", () => {
    expect(() => acme({ order: "arrival", atIs: "rank" })).toThrow(/"atIs" has no effect without order: "position"/);
    expect(() => acme({ atIs: "times" })).toThrow(/"atIs"/);
  });
});
