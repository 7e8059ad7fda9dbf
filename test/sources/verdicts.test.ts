/**
 * The presets against their providers' own libraries: 10,000 deliveries each, most of them changed somewhere, and the same verdict on every
 * one, except where a row of `STRICTER` says why ours refuses more.
 */
import { createHash, createHmac } from "node:crypto";
import { parse as parseForm, stringify } from "node:querystring";
import { sign as githubSign, verify as githubVerify } from "@octokit/webhooks-methods";
import { ApiVersion, LogSeverity, shopifyApi } from "@shopify/shopify-api";
import "@shopify/shopify-api/adapters/node";
import { isValidSlackRequest } from "@slack/bolt";
import { Webhook as StandardWebhook } from "standardwebhooks";
import Stripe from "stripe";
import { Webhook as SvixWebhook } from "svix";
import { getExpectedTwilioSignature, validateExpressRequest } from "twilio/lib/webhooks/webhooks.js";
import { describe, expect, it } from "vitest";
import type { SourceEvents, WebhookSource } from "../../src/index.ts";
import { systemClock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { Head } from "../../src/sources/headers.ts";
import { github, shopify, slack, standardWebhooks, stripe, twilio } from "../../src/sources/index.ts";
import type { ConnectedSource } from "../../src/sources/source.ts";
import { seededRandom, TEST_SECRETS } from "../../src/tools/testing/index.ts";
import { sized } from "../setup/form.ts";

type Headers = Record<string, string>;

/** Why a preset refuses what its provider's library accepts. */
interface Reason {
  readonly why: string;
  /** Whether a delivery with these headers and this query is such a case. */
  applies(headers: Headers, query: string): boolean;
  /** Makes one from the headers of a delivery that both accept. */
  example(headers: Headers): Headers;
  /** How far ahead of the clock the example is signed, seconds. Default 0. */
  readonly ahead?: number;
  /** The example's query. Default: none. */
  readonly query?: string;
}

const SECONDS = /^[1-9]\d{8,11}$/;

const stripeTimes = (headers: Headers) =>
  valueAt(headers, "signature")
    .split(",")
    .flatMap((item) => (item.startsWith("t=") ? [item.slice(2)] : []));

const STRICTER = {
  stripe: [
    {
      why: "the library takes the last of several times",
      applies: (headers) => stripeTimes(headers).length > 1,
      example: (headers) =>
        withValue(headers, "signature", (value) => `${value.slice(0, value.indexOf(","))},${value}`),
    },
    {
      why: "the library reads a time up to what is not a digit",
      applies: (headers) => stripeTimes(headers).some((time) => !SECONDS.test(time)),
      example: (headers) => withValue(headers, "signature", (value) => value.replace(",", "x,")),
    },
    {
      why: "the library accepts any time ahead of its clock",
      applies: (headers) => stripeTimes(headers).some((time) => Number.parseInt(time, 10) > Date.now() / 1000 + 300),
      example: (headers) => headers,
      ahead: 1_000,
    },
    {
      why: "the library cuts an item at its second equals sign",
      applies: (headers) => /(?:^|,)(?:t|v1)=[^,]*=/.test(valueAt(headers, "signature")),
      example: (headers) => withValue(headers, "signature", (value) => `${value}=x`),
    },
    {
      why: "the library tries any number of signatures",
      applies: (headers) => valueAt(headers, "signature").split("v1=").length > 17,
      example: (headers) => withValue(headers, "signature", (value) => value + `,v1=${"0".repeat(64)}`.repeat(16)),
    },
  ],
  standardWebhooks: [
    {
      why: "the library reads a time up to what is not a digit",
      applies: (headers) => !SECONDS.test(valueAt(headers, "timestamp")),
      example: (headers) => withValue(headers, "timestamp", (value) => `${value}x`),
    },
    {
      why: "the library cuts a signature at its second comma",
      applies: (headers) => /(?:^| )v1,[^ ]*,/.test(valueAt(headers, "signature")),
      example: (headers) => withValue(headers, "signature", (value) => `${value},x`),
    },
    {
      why: "the library tries any number of signatures",
      applies: (headers) => valueAt(headers, "signature").split(" ").length > 16,
      example: (headers) => withValue(headers, "signature", (value) => value + " v1,AAAA".repeat(16)),
    },
  ],
  slack: [
    {
      why: "the library reads any text as a time",
      applies: (headers) => !SECONDS.test(valueAt(headers, "timestamp")),
      example: () => slackHeaders('{"id":"evt_1","type":"a.thing"}', TEST_SECRETS.slack, "NaN"),
    },
    {
      why: "the library accepts any time ahead of its clock",
      applies: (headers) => Number(valueAt(headers, "timestamp")) > Date.now() / 1000 + 300,
      example: (headers) => headers,
      ahead: 1_000,
    },
    {
      why: "the library cuts a signature at its second equals sign",
      applies: (headers) => /=.*=/.test(valueAt(headers, "signature")),
      example: (headers) => withValue(headers, "signature", (value) => `${value}=x`),
    },
  ],
  twilio: [
    {
      why: "the library takes the digest of the body from anywhere in the query",
      applies: (_headers, query) => query.includes("bodySHA256=") && !/(?:^|&)bodySHA256=[0-9a-f]{64}$/.test(query),
      example: (headers) => headers,
      query: `bodySHA256=${digestOf('{"id":"evt_1","type":"a.thing"}')}&id=1`,
    },
  ],
} as const satisfies Record<string, readonly Reason[]>;

function digestOf(body: string): string {
  return createHash("sha256").update(body).digest("hex");
}

function slackHeaders(body: string, secret: string, time: string): Headers {
  const signature = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
  return { "x-slack-request-timestamp": time, "x-slack-signature": `v0=${signature}` };
}

/** The value of the header whose name ends like this. */
function valueAt(headers: Headers, end: string): string {
  return Object.entries(headers).find(([name]) => name.endsWith(`-${end}`))?.[1] ?? "";
}

function withValue(headers: Headers, end: string, change: (value: string) => string): Headers {
  const changed = Object.entries(headers).map(([name, value]) => [
    name,
    name.endsWith(`-${end}`) ? change(value) : value,
  ]);
  return Object.fromEntries(changed);
}

interface Judge {
  readonly source: (
    secrets: string | { current: string; previous: { secret: string; validUntil: number } },
  ) => WebhookSource<SourceEvents>;
  readonly secret: string;
  readonly other: string;
  /** A body and the query of its URL. Default: a JSON event, and none. */
  content?(run: number): Content;
  sign(body: string, secret: string, seconds: number, query: string): Promise<Headers> | Headers;
  /** The provider's own verdict, at the current time. */
  accepts(body: string, headers: Headers, secret: string, query: string): Promise<boolean> | boolean;
  readonly stricter: readonly Reason[];
}

interface Content {
  readonly body: string;
  readonly query: string;
}

const jsonContent = (run: number): Content => ({
  body: JSON.stringify({ id: `evt_${run}`, type: "a.thing", text: "ä€🙂" }),
  query: "",
});

const { webhooks } = new Stripe("sk_test_unused");

/** Standard Webhooks, signed and judged by `Webhook` of a library. */
function standardJudge(
  headerPrefix: string,
  Webhook: new (secret: string) => Pick<SvixWebhook, "sign" | "verify">,
): Judge {
  return {
    source: (secrets) => standardWebhooks({ secrets }),
    secret: TEST_SECRETS["standard-webhooks"],
    other: "whsec_YW5vdGhlciBzZWNyZXQgMDEyMzQ1Njc4OWFiY2RlZg==",
    sign: (body, secret, seconds) => ({
      [`${headerPrefix}-id`]: "msg_1",
      [`${headerPrefix}-timestamp`]: `${seconds}`,
      [`${headerPrefix}-signature`]: new Webhook(secret).sign("msg_1", new Date(seconds * 1000), body),
    }),
    accepts: (body, headers, secret) => notThrown(() => new Webhook(secret).verify(body, headers)),
    stricter: STRICTER.standardWebhooks,
  };
}

/** Shopify's library requires them, although no signature covers them; the preset does not. */
const SHOPIFY_UNSIGNED = {
  "x-shopify-topic": "orders/create",
  "x-shopify-shop-domain": "example.myshopify.com",
  "x-shopify-api-version": "2026-04",
  "x-shopify-webhook-id": "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
};

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
    stricter: STRICTER.stripe,
  },
  "standard-webhooks": standardJudge("webhook", StandardWebhook),
  "standard-webhooks, with the headers of svix": standardJudge("svix", SvixWebhook),
  github: {
    source: (secrets) => github({ secrets }),
    secret: TEST_SECRETS.github,
    other: "another github secret 0123456789",
    sign: async (body, secret) => ({ "x-hub-signature-256": await githubSign(secret, body) }),
    accepts: (body, headers, secret) =>
      githubVerify(secret, body, headers["x-hub-signature-256"] ?? "").catch(() => false),
    stricter: [],
  },
  shopify: {
    source: (secrets) => shopify({ secrets }),
    secret: TEST_SECRETS.shopify,
    other: "another shopify secret 0123456789",
    // The library only verifies.
    sign: (body, secret) => ({ "x-shopify-hmac-sha256": createHmac("sha256", secret).update(body).digest("base64") }),
    async accepts(rawBody, headers, apiSecretKey) {
      const library = shopifyApi({
        ...{ apiKey: "unused", apiSecretKey, hostName: "example.com", isEmbeddedApp: true },
        apiVersion: ApiVersion.April26,
        logger: { level: LogSeverity.Error },
      });
      const rawRequest = { method: "POST", url: "/", headers: { ...SHOPIFY_UNSIGNED, ...headers } };
      return (await library.webhooks.validate({ rawBody, rawRequest })).valid;
    },
    stricter: [],
  },
  slack: {
    source: (secrets) => slack({ secrets }),
    secret: TEST_SECRETS.slack,
    other: "another slack secret 0123456789",
    // The library only verifies.
    sign: (body, secret, time) => slackHeaders(body, secret, `${time}`),
    accepts: (body, headers, signingSecret) => isValidSlackRequest({ signingSecret, body, headers: headers as never }),
    stricter: STRICTER.slack,
  },
  twilio: twilioJudge("https://example.com/webhooks"),
  "twilio, with a port": twilioJudge("https://example.com:8443/webhooks"),
  "twilio, with a URL that is written otherwise": twilioJudge("http://user:o'hara@Example.com/it's (a) \"hook\""),
};

/** Twilio's webhooks at this URL, signed and judged by its library: forms, forms with a query, and JSON. */
function twilioJudge(hook: string): Judge {
  const at = (query: string) => (query === "" ? hook : `${hook}?${query}`);
  return {
    source: (secrets) => twilio({ secrets, url: hook }),
    secret: TEST_SECRETS.twilio,
    other: "another twilio token 0123456789",
    content(run) {
      const event = {
        MessageSid: `SM${run}`,
        Body: "ä€🙂 it's 100%",
        "": "x",
        a: "b",
        A: "",
        Ab: "z",
        "10": "ten",
        "9": "",
      };
      const form = `${new URLSearchParams(event)}&a=b&a=2&a=1`;
      const json = jsonContent(run).body;
      const digest = digestOf(json);
      const contents = [
        { body: form, query: "" },
        { body: form, query: "name=O'Hara&q=a%20b+c" },
        { body: json, query: `bodySHA256=${digest}` },
        { body: json, query: `id=1?&bodySHA256=${digest}` },
      ];
      return contents[run % contents.length] as Content;
    },
    sign(body, secret, seconds, query) {
      const isJson = query.includes("bodySHA256");
      const ported = hook.replace(
        /^(https?:)(\/\/[^/:]*)\//,
        (_, scheme, host) => `${scheme}${host}:${scheme === "https:" ? 443 : 80}/`,
      );
      // As its servers may spell a URL.
      const { href } = new URL(at(query));
      const [path = "", search] = href.split("?");
      const legacy = search === undefined ? href : `${path}?${stringify(parseForm(search))}`;
      const urls = [at(query), at(query).replace(hook, ported), href, legacy];
      const url = urls[seconds % urls.length] ?? "";
      return { "x-twilio-signature": getExpectedTwilioSignature(secret, url, isJson ? {} : parseForm(body)) };
    },
    accepts(body, headers, secret, query) {
      const header = (name: string) => headers[name.toLowerCase()];
      const request = {
        protocol: "https",
        header,
        headers: {},
        originalUrl: "/",
        rawBody: body,
        body: parseForm(body),
      };
      return validateExpressRequest(request, secret, { url: at(query) });
    },
    stricter: STRICTER.twilio,
  };
}

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

async function ours(source: ConnectedSource, body: string, headers: Headers, query = ""): Promise<boolean> {
  const head = new Head({ headers, url: `/?${query}` });
  const { keys } = await source.keyrings.read({});
  return source.refuse(head, null) === null && source.match(head, Buffer.from(body), keys, Date.now())?.ok === true;
}

describe.each(Object.entries(JUDGES))("%s", (_, judge) => {
  const random = seededRandom(7);
  const below = (limit: number) => Math.floor(random() * limit);

  it("agrees with the provider's library on 10,000 changed deliveries", async () => {
    const source = connect(judge.source(judge.secret));
    const tally = { both: 0, neither: 0 };
    for (let run = 0; run < sized({ quick: 2_000, full: 10_000 }); run++) {
      const at = Math.floor(Date.now() / 1000) + (AGES.at(below(AGES.length)) ?? 0);
      const signed = (judge.content ?? jsonContent)(run);
      const headers = await judge.sign(signed.body, below(8) === 0 ? judge.other : judge.secret, at, signed.query);
      const body = below(4) === 0 ? changed(signed.body, below) : signed.body;
      const sent = below(3) === 0 ? headers : withChange(headers, below);
      const query = signed.query !== "" && below(8) === 0 ? changed(signed.query, below) : signed.query;
      const own = await ours(source, body, sent, query);
      const theirs = await judge.accepts(body, sent, judge.secret, query);
      if (own === theirs) tally[own ? "both" : "neither"] += 1;
      else {
        const seen = JSON.stringify({ own, theirs, body, query, sent });
        expect(theirs && judge.stricter.some(({ applies }) => applies(sent, query)), seen).toBe(true);
      }
    }
    expect(tally.both).toBeGreaterThan(100);
    expect(tally.neither).toBeGreaterThan(100);
  });

  it.each(judge.stricter)("is stricter: $why", async ({ applies, example, ahead = 0, query = "" }) => {
    const source = connect(judge.source(judge.secret));
    const body = '{"id":"evt_1","type":"a.thing"}';
    const now = Math.floor(Date.now() / 1000);
    const usual = await judge.sign(body, judge.secret, now, "");
    expect([applies(usual, ""), await ours(source, body, usual)]).toEqual([false, true]);
    const headers = example(await judge.sign(body, judge.secret, now + ahead, query));
    expect([applies(headers, query), await ours(source, body, headers, query)]).toEqual([true, false]);
    expect(await judge.accepts(body, headers, judge.secret, query)).toBe(true);
  });

  it("takes the current secret, the replaced one until its end, and no other", async () => {
    const previous = { secret: judge.other, validUntil: Date.now() + 60_000 };
    const source = connect(judge.source({ current: judge.secret, previous }));
    const body = '{"id":"evt_1","type":"a.thing"}';
    const now = Math.floor(Date.now() / 1000);
    expect(await ours(source, body, await judge.sign(body, judge.secret, now, ""))).toBe(true);
    const old = await judge.sign(body, judge.other, now, "");
    expect(await ours(source, body, old)).toBe(true);
    const { keys } = await source.keyrings.read({});
    const later = Date.now() + 61_000;
    expect(source.match(new Head({ headers: old }), Buffer.from(body), keys, later)).toBe(null);
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
  switch (below(6)) {
    case 0: {
      const { [name]: _gone, ...rest } = headers;
      return rest;
    }
    case 1:
      return { ...headers, [name]: `${value},v1=${"0".repeat(64)}` };
    case 2:
      // A signature of another secret, and one of another version, which is left to other verifiers.
      return { ...headers, [name]: `v1,${Buffer.alloc(32).toString("base64")} v1a,AAAA ${value}` };
    case 3:
      return { ...headers, [name]: value.replace("v1", "v0") };
    case 4:
      return { ...headers, [name]: `t=1700000000,${value}` };
    default:
      return { ...headers, [name]: changed(value, below) };
  }
}
