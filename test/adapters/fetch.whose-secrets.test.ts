/** Whose secrets a request is checked with: `tenant` and `route`, as a web-standard handler takes them. */
import { describe, expect, it } from "vitest";
import { fetchVerify, fetchWebhook } from "../../adapters/fetch.ts";
import { signPayload } from "../../src/index.ts";
import { fixtures } from "../../src/tools/testing/fixtures.ts";
import { memoryReceiver, recordingLogger, SECRET, signedEvent } from "./receivers.ts";

const URL_OF = "https://acme.example.com/sms";
const signed = () => new Request(URL_OF, { method: "POST", ...signedEvent() });
const tenant = (request: Request) => new URL(request.url).hostname.split(".")[0];

/** Secrets by a function, which keeps what it is asked. */
function asking() {
  const seen: unknown[] = [];
  const secrets = async (context: object) => {
    seen.push({ ...context });
    return { current: { secret: SECRET, tenant: "client_1" } };
  };
  return { seen, secrets };
}

describe("fetchWebhook()", () => {
  it.each([
    [{}, {}],
    [{ tenant }, { tenant: "acme" }],
    [{ route: "sms" }, { route: "sms" }],
    [{ tenant: () => undefined, route: "sms" }, { route: "sms" }],
    [
      { tenant, route: "sms" },
      { tenant: "acme", route: "sms" },
    ],
  ])("with %j asks for the secrets of no more than it was told", async (options, context) => {
    const { seen, secrets } = asking();
    const { receiver } = memoryReceiver({ secrets });
    expect((await fetchWebhook(receiver, options)(signed())).status).toBe(200);
    expect(seen).toEqual([context]);
  });

  it.each([new TypeError("+15550100002"), "+15550100002"])(
    "answers 500 when tenant throws %s, and logs its kind",
    async (thrown) => {
      const { receiver, lines } = memoryReceiver();
      const throwing = () => {
        throw thrown;
      };
      expect((await fetchWebhook(receiver, { tenant: throwing })(signed())).status).toBe(500);
      expect(lines.map(({ fields }) => fields)).toMatchObject([
        { reason: thrown instanceof Error ? "TypeError" : "string" },
      ]);
      expect(JSON.stringify(lines)).not.toContain("5550100002");
    },
  );

  it.each([async () => "acme", () => null, () => 7])("answers 500 to a tenant that is no text: %s", async (given) => {
    const { receiver, lines } = memoryReceiver();
    const options = { tenant: given as unknown as typeof tenant };
    expect((await fetchWebhook(receiver, options)(signed())).status).toBe(500);
    expect(lines.map(({ fields }) => fields)).toMatchObject([{ reason: "TypeError" }]);
    expect(await fetchVerify({ secrets: SECRET, ...options })(signed())).toMatchObject({ ok: false });
  });

  it.each([
    [{}, 401],
    [{ "content-length": "5" }, 400],
  ])("takes a request without a body for what it is: %j", async (length, status) => {
    const { receiver } = memoryReceiver();
    const { headers } = signedEvent();
    const empty = new Request(URL_OF, { method: "POST", headers: { ...headers, ...length } });
    expect((await fetchWebhook(receiver)(empty)).status).toBe(status);
  });
});

describe("fetchVerify()", () => {
  it("asks for the secrets of the tenant", async () => {
    const { seen, secrets } = asking();
    const verify = fetchVerify({ secrets, tenant });
    expect(await verify(signed())).toMatchObject({ ok: true });
    expect(seen).toEqual([{ tenant: "acme" }]);
  });

  it("answers 500 when tenant throws what is no error, and logs no more than that", async () => {
    const { lines, logger } = recordingLogger();
    const throwing = () => {
      throw "+15550100002";
    };
    const verified = await fetchVerify({ secrets: SECRET, logger, tenant: throwing })(signed());
    expect(verified.ok || verified.response.status).toBe(500);
    expect(lines.map(({ message }) => message)).toEqual([expect.stringContaining("did not return a string (string)")]);
  });
});

describe("tenants with secrets of their own", () => {
  const urlOf = (name: string) => `https://${name}.example.com/sms`;
  const secretOf = (name = "") => `the-secret-of-the-tenant-${name}`;
  const post = (name: string, apiClientId: string) => {
    const body = Buffer.from(JSON.stringify(fixtures.inbound({ apiClientId })));
    const headers = signPayload({ body, secret: secretOf(name) });
    return new Request(urlOf(name), { method: "POST", body, headers });
  };

  it("sign events of their own alone, so that none suppresses another's", async () => {
    const { receiver, handled } = memoryReceiver({
      secrets: ({ tenant: name }) => ({ current: { secret: secretOf(name), tenant: `client_${name}` } }),
    });
    const handle = fetchWebhook(receiver, { tenant });
    expect((await handle(post("a", "client_b"))).status).toBe(401);
    expect((await handle(post("b", "client_b"))).status).toBe(200);
    expect(handled).toEqual(["message.inbound"]);
  });

  it("are refused with the fix while their secrets do not say whose they are", async () => {
    const secrets = ({ tenant: name }: { tenant?: string }) => secretOf(name);
    const { receiver, lines } = memoryReceiver({ secrets });
    expect((await fetchWebhook(receiver, { tenant })(post("a", "client_b"))).status).toBe(503);
    const { lines: said, logger } = recordingLogger();
    const verified = await fetchVerify({ secrets, tenant, logger })(post("a", "client_b"));
    expect(verified.ok || verified.response.status).toBe(503);
    for (const [first] of [lines, said]) expect(first?.message).toContain('return { secret, tenant: "…" }');
  });
});
