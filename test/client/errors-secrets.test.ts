import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { ConnectionError, createClient } from "../../src/client/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { failureOf, startClient } from "./support.ts";

const SECRET = "marked-secret-f00d";
const TOKEN = "marked-token-cafe";
const PHONE = "+14155550199";
const TEXT = "marked text of a message";

const sendRequest = () =>
  ({ sendFrom: "num_1", to: [PHONE], messageType: "SMS", text: TEXT, externalReference: "order-1" }) as const;

describe("secrets, tokens, numbers and texts", () => {
  const failing = (message: string): typeof fetch => {
    return async (input) => {
      if (String(input).endsWith("/token")) return new Response(JSON.stringify({ access_token: TOKEN }));
      const cause = Object.assign(new Error(`inner ${message}`), { code: "ECONNRESET", syscall: "read", errno: -104 });
      throw Object.assign(new TypeError(message, { cause }), {
        headers: { authorization: `Bearer ${TOKEN}` },
        body: TEXT,
      });
    };
  };
  const started = (inner: typeof fetch) =>
    createClient({
      ...{ baseUrl: "http://127.0.0.1:9", clientId: "client_main", clientSecret: SECRET },
      ...{ maxRetries: 0, logger: silentLogger, fetch: inner },
    });
  const shown = (value: unknown) =>
    `${inspect(value, { depth: 9, showHidden: true })} ${JSON.stringify(value)} ${String(value)}`;

  it("are in no error of a fetch that shows them", async () => {
    const client = started(failing(`sending ${TOKEN} and ${SECRET} to ${PHONE} failed`));
    const error = await failureOf(client.messages.send(sendRequest()), ConnectionError);
    const all = `${shown(error)} ${error.stack}`;
    for (const marked of [SECRET, TOKEN, PHONE, TEXT]) expect(all).not.toContain(marked);
  });

  it("are left out of a cause that still says what happened", async () => {
    const error = await failureOf(started(failing("fetch failed")).whoami(), ConnectionError);
    const { cause } = error;
    expect(cause).toMatchObject({ name: "TypeError", message: "fetch failed" });
    expect((cause as Error).cause).toMatchObject({ code: "ECONNRESET", syscall: "read", errno: -104 });
    expect(cause).not.toHaveProperty("headers");
  });

  it("are left out of a cause whose message nobody knows, in whatever words it has them", async () => {
    for (const message of [`Invalid value ${TEXT}`, TEXT, "4155550199", `sent to 415-555-0199: ${TEXT}`]) {
      const foreign = Object.assign(new RangeError(message), { code: "ERR_FOREIGN", cause: new Error(message) });
      const client = started(async (input) => {
        if (String(input).endsWith("/token")) return Response.json({ access_token: TOKEN });
        throw foreign;
      });
      const error = await failureOf(client.messages.send(sendRequest()), ConnectionError);
      expect(error.cause).toMatchObject({ name: "RangeError", code: "ERR_FOREIGN", message: "fetch failed" });
      const all = `${shown(error)} ${error.stack}`;
      for (const marked of [TEXT, "4155550199", "415-555-0199"]) expect(all).not.toContain(marked);
    }
  });

  it.each([
    "ECONNRESET",
    "ECONNREFUSED",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ETIMEDOUT",
    "EPIPE",
    "EHOSTUNREACH",
    "CERT_HAS_EXPIRED",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UND_ERR_SOCKET",
    "HPE_INVALID_CONSTANT",
  ])("leave the message of a cause that the system or fetch itself wrote: %s", async (code) => {
    const cause = Object.assign(new Error("other side closed"), { code });
    const client = started(async () => {
      throw new TypeError("fetch failed", { cause });
    });
    const error = await failureOf(client.whoami(), ConnectionError);
    expect((error.cause as Error).cause).toMatchObject({ code, message: "other side closed" });
  });

  it.each(["body", "basic"] as const)("are in no error of the token route (authMethod %s)", async (authMethod) => {
    const refused: typeof fetch = async (_, init) => {
      throw new TypeError(`fetch failed: ${inspect(init)}`);
    };
    const client = createClient({
      ...{ baseUrl: "http://127.0.0.1:9", clientId: "client_main", clientSecret: `${SECRET} &` },
      ...{ authMethod, maxRetries: 0, logger: silentLogger, fetch: refused },
    });
    const all = shown(await failureOf(client.whoami(), ConnectionError));
    expect(all).not.toContain(SECRET);
    expect(all).not.toContain(btoa(SECRET).slice(4, 16));
  });

  it("are not shown by inspect or JSON of the client", async () => {
    const client = started(async () => new Response(JSON.stringify({ access_token: TOKEN, numbers: [] })));
    await client.numbers.list();
    expect(shown(client)).not.toMatch(/marked-/);
  });

  it("are in a result only where its reader asks by name: a generated secret", async () => {
    const { client } = await startClient();
    const updated = await client.webhooks.update("inbound", { signingEnabled: true });
    expect(updated.generatedSecret).toMatch(/.{16,}/);
    expect(Object.keys(updated)).not.toContain("generatedSecret");
    expect(`${inspect(updated)}${JSON.stringify(updated)}`).not.toContain(updated.generatedSecret);
  });
});
