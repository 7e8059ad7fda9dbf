/** Every preset behind every adapter over real HTTP, as a suite: on each store the same. */
import { createHmac } from "node:crypto";
import express from "express";
import Fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { expressWebhook } from "../../adapters/express.ts";
import { fastifyWebhook } from "../../adapters/fastify.ts";
import { fetchWebhook } from "../../adapters/fetch.ts";
import type { WebhookReceiver } from "../../adapters/mounting.ts";
import { type NextReceiver, type NextRoutes, nextWebhook } from "../../adapters/next.ts";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver, type InboxStore, type WebhookSource } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import {
  github,
  hmacSource,
  type OpenEvents,
  type SourceOptions,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  twilio,
} from "../../src/sources/index.ts";
import { fixtures, type SignedRequest, signedRequest, TEST_SECRETS, tampered } from "../../src/tools/testing/index.ts";
import { bridge } from "./fetch-bridge.ts";
import { serve } from "./serving.ts";

/** Mounts a receiver at `/webhooks` of a server, and returns the server's port. */
type Mount = (receiver: WebhookReceiver & NextReceiver) => Promise<number>;

async function served(listener: Parameters<typeof serve>[0]): Promise<number> {
  const { port, close } = await serve(listener);
  onTestFinished(close);
  return port;
}

export const ADAPTERS: Readonly<Record<string, Mount>> = {
  Express: (receiver) => served(express().all("/webhooks", expressWebhook(receiver))),
  async Fastify(receiver) {
    const app = Fastify();
    onTestFinished(() => app.close());
    await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
    return Number(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
  },
  "node:http": (receiver) => served(nodeWebhook(receiver)),
  fetch: (receiver) => served(bridge(fetchWebhook(receiver))),
  "Next.js": (receiver) => {
    const routes = nextWebhook(receiver, { drain: "off" });
    return served(bridge((request) => routes[request.method as keyof NextRoutes](request)));
  },
};

const WRONG_SECRET = "whsec_YSB3cm9uZyBzZWNyZXQgMDEyMzQ1Njc4OWFiY2RlZg==";

interface Signing {
  readonly secret?: string;
  /** Epoch milliseconds. */
  readonly timestamp?: number;
}

interface Preset {
  readonly source: (options: { readonly secrets: SourceOptions["secrets"] }) => unknown;
  readonly current: string;
  readonly previous: string;
  /** The event with this number, as handlers receive it. */
  content(n: number): object;
  readonly type: string;
  /** The headers that are kept beside it. */
  kept(n: number): Readonly<Record<string, string>>;
  /** Its answer to what was accepted does not say the outcome. */
  readonly isSilent?: true;
  sign(n: number, signing: Signing): SignedRequest;
}

/** A preset whose requests `signedRequest` can sign. */
function known(
  source: keyof typeof TEST_SECRETS,
  rest: Omit<Preset, "current" | "previous" | "sign"> & { readonly previous?: string },
): Preset {
  return {
    current: TEST_SECRETS[source],
    previous: "the secret before this one",
    ...rest,
    sign: (n, signing) => signedRequest(rest.content(n), { source, id: `id-${n}`, ...signing }),
  };
}

const ACME_SECRET = "acme_tests_0123456789abcdef";
const ACME_KEPT = { "acme-topic": "order.paid", "acme-shop": "attic" };
const acmeEvent = (n: number) => ({ id: `${n}`, name: "ä€🙂" });

const PRESETS: Readonly<Record<string, Preset>> = {
  stripe: known("stripe", {
    source: stripe,
    content: (n) => fixtures.stripe({ id: `evt_${n}` }),
    type: "invoice.paid",
    kept: () => ({}),
  }),
  github: known("github", {
    source: github,
    content: (n) => fixtures.github({ id: `${n}` }),
    type: "push",
    kept: (n) => ({ "x-github-event": "push", "x-github-delivery": `id-${n}` }),
  }),
  shopify: known("shopify", {
    source: shopify,
    content: (n) => fixtures.shopify({ id: `${n}` }),
    type: "orders/create",
    kept: (n) => ({
      "x-shopify-topic": "orders/create",
      "x-shopify-webhook-id": `id-${n}`,
      "x-shopify-shop-domain": "example.myshopify.com",
    }),
  }),
  standardWebhooks: known("standard-webhooks", {
    source: standardWebhooks,
    previous: "whsec_YW5vdGhlciBzZWNyZXQgMDEyMzQ1Njc4OWFiY2RlZg==",
    content: () => fixtures.standardWebhooks(),
    type: "user.created",
    kept: () => ({}),
  }),
  slack: known("slack", {
    source: slack,
    content: (n) => fixtures.slack({ id: `Ev${n}` }),
    type: "app_mention",
    kept: () => ({}),
    isSilent: true,
  }),
  twilio: known("twilio", {
    source: ({ secrets }) => twilio({ secrets, url: "https://example.com/webhooks" }),
    content: (n) => fixtures.twilio({ id: `SM${`${n}`.padStart(32, "0")}` }),
    type: "message.delivered",
    kept: (n) => ({ "i-twilio-idempotency-token": `id-${n}` }),
    isSilent: true,
  }),
  hmacSource: {
    source: hmacSource({
      preset: "acme",
      header: "acme-signature",
      prefix: "v1=",
      timestamp: "acme-time",
      signed: "{timestamp}.{body}",
      identity: { body: "id" },
      type: { header: "acme-topic" },
      keep: ["acme-shop"],
      lastRetryMs: 3_600_000,
    }),
    current: ACME_SECRET,
    previous: "acme_tests_before_0123456789",
    content: acmeEvent,
    type: "order.paid",
    kept: () => ACME_KEPT,
    sign(n, { secret = ACME_SECRET, timestamp = Date.now() }) {
      const body = Buffer.from(JSON.stringify(acmeEvent(n)));
      const time = `${Math.floor(timestamp / 1000)}`;
      const signature = createHmac("sha256", secret).update(`${time}.`).update(body).digest("hex");
      const headers = { "acme-signature": `v1=${signature}`, "acme-time": time, ...ACME_KEPT };
      return { method: "POST", headers, body };
    },
  },
};

/** What a handler was given. */
interface Seen {
  readonly type: string;
  readonly event: object;
  readonly body: string;
  /** The request's headers that `ctx.header()` returns. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** What the handler must be given of the event with this number. */
function seenOf({ type, content, kept, sign }: Preset, n: number): Seen {
  return { type, event: content(n), body: Buffer.from(sign(n, {}).body).toString(), headers: kept(n) };
}

/** A receiver on `store`, behind a server. */
async function receiving(
  preset: Preset,
  mount: Mount,
  store: InboxStore<never>,
  ack: "handled" | "stored" = "handled",
) {
  const { current, previous } = preset;
  const secrets = { current, previous: { secret: previous, validUntil: Date.now() + 60_000 } };
  const source = preset.source({ secrets }) as WebhookSource<
    OpenEvents<object, Readonly<Record<string, object>>, object>
  >;
  const receiver = createReceiver({ store, source, ack, logger: silentLogger });
  onTestFinished(() => receiver.stop());
  // The signature of Twilio is kept too, and depends on the secret.
  const names = Object.keys(preset.sign(0, {}).headers).filter((name) => name !== "x-twilio-signature");
  const seen: Seen[] = [];
  if (["stripe", "shopify", "twilio"].includes(source.preset)) receiver.onLate(() => expect.fail("Nothing is late."));
  receiver.on(preset.type, (event, ctx) => {
    const headers = Object.fromEntries(names.map((name) => [name, ctx.header(name)]));
    seen.push({ type: ctx.meta.eventType, event, body: Buffer.from(ctx.rawBody).toString(), headers });
  });
  const port = await mount(receiver as never);
  const post = async (request: SignedRequest | { readonly method: "GET" }) => {
    const answer = await fetch(`http://127.0.0.1:${port}/webhooks`, request);
    const text = await answer.text();
    const { outcome, error }: { readonly outcome?: string; readonly error?: string } = JSON.parse(
      text.startsWith("{") ? text : "{}",
    );
    return [answer.status, outcome ?? error];
  };
  const accepted = (outcome: string) => [200, preset.isSilent ? undefined : outcome];
  return { receiver, seen, post, accepted };
}

/** Tests can share an inbox: each has an event of its own. */
let events = 0;

/** `open` makes a store, on the same inbox each time if it is durable. */
export function sourceCases(open: () => InboxStore<never>): void {
  const all = Object.entries(ADAPTERS).flatMap(([adapter, mount]) =>
    Object.entries(PRESETS).map(([name, preset]) => [adapter, name, mount, preset] as const),
  );

  describe.each(all)("%s, %s", (_adapter, _name, mount, preset) => {
    it("passes an event to the handler of its type, with its headers, and a repeat to none", async () => {
      const { seen, post, accepted } = await receiving(preset, mount, open());
      const n = ++events;
      const timestamp = Date.now();
      const request = preset.sign(n, { timestamp });
      expect(await post(request)).toEqual(accepted("handled"));
      expect(await post(request)).toEqual(accepted("duplicate"));
      expect(await post(preset.sign(n, { timestamp: timestamp - 2_000 }))).toEqual(accepted("duplicate"));
      expect(seen).toEqual([seenOf(preset, n)]);
    });

    it("refuses a changed byte, and accepts what the previous secret signed", async () => {
      const { seen, post, accepted } = await receiving(preset, mount, open());
      const n = ++events;
      const { previous: secret } = preset;
      const refused = [401, "unauthorized"];
      expect(await post(tampered(preset.sign(n, {})))).toEqual(refused);
      expect(await post(preset.sign(n, { secret: WRONG_SECRET }))).toEqual(refused);
      expect(await post({ method: "GET" })).toEqual([405, "method_not_allowed"]);
      expect(await post(preset.sign(n, { secret }))).toEqual(accepted("handled"));
      expect(seen).toEqual([seenOf(preset, n)]);
    });

    if (!open().capabilities.durable) return;
    it("rebuilds the event from what is stored after a restart", async () => {
      const first = await receiving(preset, mount, open(), "stored");
      const n = ++events;
      expect(await first.post(preset.sign(n, {}))).toEqual(first.accepted("accepted"));
      await first.receiver.stop();
      expect(first.seen).toEqual([]);

      const second = await receiving(preset, mount, open(), "stored");
      expect(await second.post(preset.sign(n, {}))).toEqual(second.accepted("duplicate"));
      await second.receiver.drain();
      expect(second.seen).toEqual([seenOf(preset, n)]);
    });
  });
}
