/** Which bodies are not read, and what becomes of large ones that come at once: every preset, every adapter, real HTTP. */
import { createHmac } from "node:crypto";
import { request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver, type SourceEvents, type WebhookSource } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import {
  defineSource,
  github,
  hmacSource,
  type SourceDefinition,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  twilio,
} from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import {
  fixtures,
  incomingOf,
  type SignedRequest,
  signedRequest,
  TEST_SECRETS,
} from "../../src/tools/testing/index.ts";
import { openSocket, requestBytes } from "../contracts/adapter-bench.ts";
import { ADAPTERS } from "./source-cases.ts";

function receiving(source: WebhookSource<SourceEvents>) {
  const receiver = createReceiver({ store: memoryStore({ volatile: true }), source, logger: silentLogger });
  onTestFinished(() => receiver.stop());
  let handled = 0;
  receiver.onAny(() => {
    handled += 1;
  });
  return { receiver, handled: () => handled };
}

const SECRET = "a secret of this provider";
const acme: SourceDefinition<object> = {
  preset: "acme",
  lastRetryMs: 0,
  verify(head, body, keys) {
    const signature = Buffer.from(head.header("x-a") ?? head.header("x-b") ?? "", "hex");
    const key = keys.find((each) => each.signed(signature, "sha256", body));
    return key === undefined ? { ok: false, code: "signature_mismatch" } : { ok: true, key, signedAt: null };
  },
  parse: () => ({ ok: true, event: {} }),
  place: (_event, { digest }) => ({ type: "thing", id: digest() }),
};
const BODY = Buffer.from('{"id":1}');
const signatureOf = (text: string) => createHmac("sha256", SECRET).update(text).digest("hex");
const own = (headers: Record<string, string>): SignedRequest => ({ method: "POST", headers, body: BODY });

interface Case {
  readonly source: WebhookSource<SourceEvents>;
  readonly request: () => SignedRequest;
  /** Without any one of these the body is not read. */
  readonly needs: readonly string[];
}

const known = (
  name: keyof typeof TEST_SECRETS,
  source: WebhookSource<SourceEvents>,
  content: object,
  needs: readonly string[],
): Case => ({ source, needs, request: () => signedRequest(content, { source: name }) });

const url = "https://example.com/webhooks";
const twoHeaders = "{timestamp}.{header:x-id}.{body}";
const CASES: Readonly<Record<string, Case>> = {
  stripe: known("stripe", stripe({ secrets: TEST_SECRETS.stripe }), fixtures.stripe(), ["stripe-signature"]),
  github: known("github", github({ secrets: TEST_SECRETS.github }), fixtures.github(), ["x-hub-signature-256"]),
  shopify: known("shopify", shopify({ secrets: TEST_SECRETS.shopify }), fixtures.shopify(), ["x-shopify-hmac-sha256"]),
  slack: known("slack", slack({ secrets: TEST_SECRETS.slack }), fixtures.slack(), [
    "x-slack-signature",
    "x-slack-request-timestamp",
  ]),
  "slack's url_verification": known(
    "slack",
    slack({ secrets: TEST_SECRETS.slack }),
    { type: "url_verification", challenge: "c" },
    ["x-slack-signature", "x-slack-request-timestamp"],
  ),
  twilio: known("twilio", twilio({ secrets: TEST_SECRETS.twilio, url }), fixtures.twilio(), ["x-twilio-signature"]),
  standardWebhooks: known(
    "standard-webhooks",
    standardWebhooks({ secrets: TEST_SECRETS["standard-webhooks"] }),
    fixtures.standardWebhooks(),
    ["webhook-id", "webhook-timestamp", "webhook-signature"],
  ),
  hmacSource: {
    source: hmacSource({
      preset: "acme",
      header: "x-signature",
      timestamp: "x-time",
      signed: twoHeaders,
      identity: "digest",
      lastRetryMs: 0,
    })({ secrets: SECRET }),
    needs: ["x-signature", "x-time", "x-id"],
    request() {
      const time = `${Math.floor(Date.now() / 1000)}`;
      return own({ "x-time": time, "x-id": "7", "x-signature": signatureOf(`${time}.7.${BODY}`) });
    },
  },
  defineSource: {
    source: defineSource({ ...acme, signedBy: [["x-a"], ["x-b"]] })({ secrets: SECRET }),
    needs: ["x-b"],
    request: () => own({ "x-b": signatureOf(`${BODY}`) }),
  },
};

describe.each(Object.entries(CASES))("%s", (_name, { source, request, needs }) => {
  it.each(needs.flatMap((name) => [["without", name] as const, ["with an empty", name] as const]))(
    "reads no body %s %s",
    async (how, name) => {
      const { receiver } = receiving(source);
      const { headers, ...rest } = request();
      const { [name]: _gone, ...others } = headers as Record<string, string>;
      const changed = how === "without" ? others : { ...others, [name]: "" };
      let reads = 0;
      const incoming = incomingOf({ ...rest, headers: changed as SignedRequest["headers"] });
      const readBody: typeof incoming.readBody = (reading) => {
        reads += 1;
        return incoming.readBody(reading);
      };
      const answer = await receiver.handle({ ...incoming, readBody });
      expect([answer.status, answer.close, reads]).toEqual([401, true, 0]);
      expect(receiver.counters).toEqual({ "refused:missing_signature": 1 });
    },
  );

  it("reads the body with all of them", async () => {
    const { receiver } = receiving(source);
    expect((await receiver.handle(incomingOf(request()))).status).toBe(200);
  });
});

describe("signedBy", () => {
  it("is optional: without it verify decides", async () => {
    const { receiver } = receiving(defineSource(acme)({ secrets: SECRET }));
    expect(await receiver.handle(incomingOf(own({})))).toMatchObject({ status: 401, close: false });
  });

  it.each([[[]], [[[]]], [["x-a"]], [[["X-A"]]], [[["x-a"], []]], ["x-a"]])("is refused as %j", (signedBy) => {
    expect(() => defineSource({ ...acme, signedBy: signedBy as never })).toThrow(/"signedBy" must hold lists/);
  });
});

describe.each(Object.entries(ADAPTERS))("%s", (_name, mount) => {
  const push = () => signedRequest(fixtures.github(), { source: "github" });
  const { headers, body } = push();
  const signed = Object.entries(headers) as [string, string][];
  const unsigned = signed.filter(([name]) => name !== "x-hub-signature-256");

  async function mounted() {
    const { receiver, handled } = receiving(github({ secrets: TEST_SECRETS.github }));
    const port = await mount(receiver as never);
    const connect = async () => {
      const connection = await openSocket(port);
      onTestFinished(() => connection.close());
      return connection;
    };
    return { port, handled, connect };
  }

  it("does not take the body that it left unread for a request", async () => {
    const { connect, handled } = await mounted();
    const inner = requestBytes({ path: "/webhooks", headers: signed, body });
    const connection = await connect();
    connection.send(requestBytes({ path: "/webhooks", headers: unsigned, body: inner }));
    expect((await connection.answer()).status).toBe(401);
    await expect(connection.answer()).rejects.toThrow();
    expect(handled()).toBe(0);
  });

  it("answers a sender that waits for 100-continue", async () => {
    const { connect } = await mounted();
    const connection = await connect();
    const headers = [...unsigned, ["content-length", "1000000"], ["expect", "100-continue"]] as const;
    connection.send(requestBytes({ path: "/webhooks", headers }));
    let answer = await connection.answer({ bodyless: true });
    if (answer.status === 100) answer = await connection.answer();
    expect(answer.status).toBe(401);
  });
});

describe.each(["node:http", "fetch"])("%s", (name) => {
  it("takes three bodies of 24 MB at once, which hold more than all bodies may", async () => {
    const { receiver } = receiving(github({ secrets: TEST_SECRETS.github }));
    const port = await ADAPTERS[name]?.(receiver as never);
    const send = (n: number) => {
      const { headers, body } = signedRequest(`{"n":${n},"text":"${"x".repeat(24_000_000)}"}`, { source: "github" });
      const piece = Math.ceil(body.length / 10);
      return new Promise<number>((resolve, reject) => {
        const options = { port, host: "127.0.0.1", path: "/webhooks", method: "POST" };
        const sent = { ...headers, "content-length": body.length };
        const outgoing = httpRequest({ ...options, headers: sent }, (response) => {
          response.resume().once("end", () => resolve(response.statusCode ?? 0));
        });
        outgoing.once("error", reject);
        void (async () => {
          for (let at = 0; at < body.length; at += piece) {
            outgoing.write(body.subarray(at, at + piece));
            await sleep(50);
          }
          outgoing.end();
        })();
      });
    };
    expect(await Promise.all([send(1), send(2), send(3)])).toEqual([200, 200, 200]);
  });
});
