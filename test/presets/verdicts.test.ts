/**
 * The presets against their providers' own libraries: 10,000 deliveries each, most of them changed somewhere, and the same verdict on every
 * one, except where the table at the end of this file says why ours is stricter.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { sign as githubSign, verify as githubVerify } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { describe, expect, it } from "vitest";
import type { SourceEvents, WebhookSource } from "../../src/index.ts";
import { systemClock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { github, shopify, standardWebhooks, stripe } from "../../src/presets/index.ts";
import type { ConnectedSource } from "../../src/sources/source.ts";
import { seededRandom, TEST_SECRETS } from "../../src/testing/index.ts";
import { sized } from "../setup/form.ts";

type Headers = Record<string, string>;

interface Judge {
  readonly source: (
    secrets: string | { current: string; previous: { secret: string; validUntil: number } },
  ) => WebhookSource<SourceEvents>;
  readonly secret: string;
  readonly other: string;
  sign(body: string, secret: string, seconds: number): Promise<Headers> | Headers;
  /** The provider's own verdict, at the current time. */
  accepts(body: string, headers: Headers, secret: string): Promise<boolean> | boolean;
  /** Why we may refuse what the library accepts. */
  isStricter(headers: Headers, body: string): boolean;
}

const { webhooks } = new Stripe("sk_test_unused");

const JUDGES: Readonly<Record<string, Judge>> = {
  stripe: {
    source: (secrets) => stripe({ secrets }),
    secret: TEST_SECRETS.stripe,
    other: "whsec_another_one_0123456789abcdef",
    sign: (payload, secret, timestamp) => ({
      "stripe-signature": webhooks.generateTestHeaderString({ payload, secret, timestamp }),
    }),
    accepts: (body, headers, secret) =>
      notThrown(() => webhooks.constructEvent(body, headers["stripe-signature"] ?? "", secret)),
    isStricter({ "stripe-signature": header = "" }) {
      const times = header.split(",").filter((item) => item.startsWith("t="));
      const [time = ""] = times;
      const isAhead = Number.parseInt(time.slice(2), 10) > Date.now() / 1000 + 300;
      // The library cuts an item at its second "=" and reads on.
      const isCut = /(?:^|,)(?:t|v1)=[^,]*=/.test(header);
      return times.length > 1 || !/^t=[1-9]\d{8,11}$/.test(time) || isAhead || isCut;
    },
  },
  "standard-webhooks": {
    source: (secrets) => standardWebhooks({ secrets }),
    secret: TEST_SECRETS["standard-webhooks"],
    other: "whsec_YW5vdGhlciBzZWNyZXQgMDEyMzQ1Njc4OWFiY2RlZg==",
    sign(body, secret, seconds) {
      const signature = new Webhook(secret).sign("msg_1", new Date(seconds * 1000), body);
      return { "webhook-id": "msg_1", "webhook-timestamp": `${seconds}`, "webhook-signature": signature };
    },
    accepts: (body, headers, secret) =>
      notThrown(() => new Webhook(secret).verify(body, headers, { jsonParse: false })),
    // The library cuts a signature at its second comma.
    isStricter: ({ "webhook-timestamp": time = "", "webhook-signature": signed = "" }) =>
      !/^[1-9]\d{8,11}$/.test(time) || /(?:^| )v1,[^ ]*,/.test(signed),
  },
  github: {
    source: (secrets) => github({ secrets }),
    secret: TEST_SECRETS.github,
    other: "another github secret 0123456789",
    sign: async (body, secret) => ({ "x-hub-signature-256": await githubSign(secret, body) }),
    accepts: (body, headers, secret) =>
      githubVerify(secret, body, headers["x-hub-signature-256"] ?? "").catch(() => false),
    isStricter: () => false,
  },
  shopify: {
    source: (secrets) => shopify({ secrets }),
    secret: TEST_SECRETS.shopify,
    other: "another shopify secret 0123456789",
    sign: (body, secret) => ({ "x-shopify-hmac-sha256": createHmac("sha256", secret).update(body).digest("base64") }),
    // As @shopify/shopify-api compares them (lib/utils/hmac-validator.ts): the texts, in constant time.
    accepts(body, headers, secret) {
      const expected = Buffer.from(createHmac("sha256", secret).update(body, "utf8").digest("base64"));
      const given = Buffer.from(headers["x-shopify-hmac-sha256"] ?? "");
      return expected.length === given.length && timingSafeEqual(expected, given);
    },
    isStricter: () => false,
  },
};

function notThrown(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

function connect(source: WebhookSource<SourceEvents>): ConnectedSource {
  return source.connect("entry", { clock: systemClock, logger: silentLogger });
}

async function ours(source: ConnectedSource, body: string, headers: Headers): Promise<boolean> {
  const claimed = source.check(headers, Date.now());
  if (!claimed.ok) return false;
  const match = source.match(claimed, Buffer.from(body), await source.keyrings.read({}), Date.now());
  return match !== null && !("ok" in match);
}

describe.each(Object.entries(JUDGES))("%s", (_, judge) => {
  const random = seededRandom(7);
  const below = (limit: number) => Math.floor(random() * limit);

  it("agrees with the provider's library on 10,000 changed deliveries", async () => {
    const source = connect(judge.source(judge.secret));
    const tally = { both: 0, neither: 0, stricter: 0 };
    for (let run = 0; run < sized({ quick: 2_000, full: 10_000 }); run++) {
      const at = Math.floor(Date.now() / 1000) + (AGES.at(below(AGES.length)) ?? 0);
      const signed = JSON.stringify({ id: `evt_${run}`, type: "a.thing", text: "ä€🙂" });
      const headers = await judge.sign(signed, below(8) === 0 ? judge.other : judge.secret, at);
      const body = below(4) === 0 ? changed(signed, below) : signed;
      const sent = below(3) === 0 ? headers : withChange(headers, below);
      const [own, theirs] = [await ours(source, body, sent), await judge.accepts(body, sent, judge.secret)];
      if (own === theirs) tally[own ? "both" : "neither"] += 1;
      else {
        const seen = JSON.stringify({ own, theirs, body, sent });
        expect(theirs && judge.isStricter(sent, body), seen).toBe(true);
        tally.stricter += 1;
      }
    }
    expect(tally.both).toBeGreaterThan(100);
    expect(tally.neither).toBeGreaterThan(100);
  });

  it("takes the current secret, the replaced one until its end, and no other", async () => {
    const previous = { secret: judge.other, validUntil: Date.now() + 60_000 };
    const source = connect(judge.source({ current: judge.secret, previous }));
    const body = '{"id":"evt_1","type":"a.thing"}';
    const now = Math.floor(Date.now() / 1000);
    expect(await ours(source, body, await judge.sign(body, judge.secret, now))).toBe(true);
    const old = await judge.sign(body, judge.other, now);
    expect(await ours(source, body, old)).toBe(true);
    const claimed = source.check(old, Date.now());
    if (!claimed.ok) throw new Error("refused");
    const later = Date.now() + 61_000;
    expect(source.match(claimed, Buffer.from(body), await source.keyrings.read({}), later)).toBe(null);
  });
});

/** Seconds from now: within the tolerance of five minutes, at its edges and beyond. */
const AGES = [0, 0, 0, -1, -299, -302, -100_000, 1, 298, 302, 100_000];

function changed(text: string, below: (limit: number) => number): string {
  const at = below(text.length);
  switch (below(5)) {
    case 0:
      return text.slice(0, at) + text.slice(at + 1);
    case 1:
      return `${text.slice(0, at)} ${text.slice(at)}`;
    case 2:
      return text + text.charAt(at);
    case 3:
      return text.slice(0, at) + (text.charAt(at) === "0" ? "1" : "0") + text.slice(at + 1);
    default:
      return text.slice(0, at) + text.charAt(at).toUpperCase() + text.slice(at + 1);
  }
}

/** Changes one header, drops it, or adds what providers add while a secret is rolled. */
function withChange(headers: Headers, below: (limit: number) => number): Headers {
  const names = Object.keys(headers);
  const name = names[below(names.length)] ?? "";
  const value = headers[name] ?? "";
  switch (below(5)) {
    case 0: {
      const { [name]: _gone, ...rest } = headers;
      return rest;
    }
    case 1:
      return { ...headers, [name]: `${value},v1=${"0".repeat(64)}` };
    case 2:
      return { ...headers, [name]: `v1,${Buffer.alloc(32).toString("base64")} ${value}` };
    case 3:
      return { ...headers, [name]: value.replace("v1", "v0") };
    default:
      return { ...headers, [name]: changed(value, below) };
  }
}
