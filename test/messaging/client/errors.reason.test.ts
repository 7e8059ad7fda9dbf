import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { maskedReason, textsIn } from "../../../src/messaging/client/answers.ts";
import { ApiError, OAuthError } from "../../../src/messaging/client/index.ts";
import { SMS } from "./operations.ts";
import { failureOf, startClient, startServer, startTokens } from "./support.ts";

const UNCAUGHT_CHILD = fileURLToPath(
  new URL("../../../.build/test/messaging/client/uncaught-child.js", import.meta.url),
);
const TEXT = "Your code is ready, Anna";
const SENT = [TEXT, "hi", "+14155550123", "secret of mine", "😀😀"];

describe("maskedReason()", () => {
  it.each([
    ["sendFrom does not belong to this client.", "sendFrom does not belong to this client"],
    ['"signingEnabled" is required', '"signingEnabled" is required'],
    ["webhookDeliveryOverride must be an absolute address", "webhookDeliveryOverride must be an absolute address"],
    ["The recipient's carrier isn't reachable", "The recipient's carrier isn't reachable"],
    ["Recipient +1 (415) 555-0199 opted out", "Recipient …99 opted out"],
    ["two\nlines\u0000\u001b[31m", "two lines [redacted]"],
  ])("shows %j", (message, shown) => {
    expect(maskedReason(message, SENT)).toBe(`: ${shown}`);
  });

  it.each([
    ...[`Text ${TEXT} is too long`, "Text YOUR CODE IS … is too long", "Text your+code+is+ready is too long"],
    ...["Text hi is too short", "Text 😀😀 is too short", "Text 'hello there' is bad", 'Text "hello there" is bad'],
    ...['Text {"to":1}', "Text <b>", "Text https://example.com/x", "Text Bearer abc", "Text a%20b"],
    ...["Text 0123456789abcdef0123456789abcdef", "Text dG9rZW4tb2YtYW4tYXBwbGljYXRpb24=", "Text secret of mine"],
  ])("ends at what may have been sent: %j", (message) => {
    expect(maskedReason(message, SENT)).toBe(": Text [redacted]");
  });

  it.each(["", "   ", `${TEXT} is wrong`, "<html>", "+14155550123"])("says nothing of %j", (message) => {
    expect(maskedReason(message, SENT)).toBe("");
  });

  it("takes a short text for one word, not for a part of others", () => {
    expect(maskedReason("this thing is white", ["hi", "i"])).toBe(": this thing is white");
  });

  it("is one line of at most some 300 characters, and not slow on a page, or for thousands of recipients", () => {
    expect(maskedReason("word ".repeat(10_000), []).length).toBeLessThan(320);
    const startedAt = performance.now();
    maskedReason("a'".repeat(500_000), textsIn({ to: Array.from({ length: 5_000 }, (_, i) => `+1415555${i}`) }));
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});

describe("an error of a refusal", () => {
  it("says the service's reason in its message, and what was sent only by name", async () => {
    const { client } = await startClient();
    const error = await failureOf(client.messages.send({ ...SMS, sendFrom: "num_unknown" }), ApiError);
    expect(error.serviceMessage).not.toBe("");
    expect(error.message).toMatch(/^messages\.send was answered with 4\d\d [A-Z_]+ \(request \S+\): \w.+\w\./);
  });

  const words = "marked words of a person";
  it.each<[what: string, path: string, options: object]>([
    ["a path", "/api/core/x/marked%20words%20of%20a%20person", {}],
    ["a query", "/api/core/x?q=marked%20words%20of%20a%20person", {}],
    ["a header", "/api/core/x", { headers: { "x-who": words } }],
    ["a body", "/api/core/x", { body: { deep: [{ who: words }] } }],
    ["a recipient", "/api/core/x", { body: { ...SMS, to: [...SMS.to, words] } }],
  ])("does not repeat what stood in %s", async (_, path, options) => {
    const error = { code: "INVALID_REQUEST", message: `Refused: ${words} is bad`, details: {} };
    const { client } = await startServer({ status: 400, body: { error } });
    const refused = await failureOf(client.request("POST", path, options), ApiError);
    expect(refused.message).toContain(" was answered with 400 INVALID_REQUEST: Refused: [redacted].");
    expect(refused.serviceMessage).toBe(`Refused: ${words} is bad`);
  });

  it("of the token route says its description", async () => {
    const error_description = "The client is suspended until a-secret is changed";
    const { client } = await startTokens({ status: 401, body: { error: "invalid_client", error_description } });
    const { message } = await failureOf(client.whoami(), OAuthError);
    expect(message).toContain("401 invalid_client: The client is suspended until [redacted]. The credentials");
  });

  it("that nobody catches is printed by node with the reason", async () => {
    const { emulator } = await startClient({ emulator: { port: 0 } });
    const { url, clientId, clientSecret } = emulator;
    const service = { SERVICE_BASE_URL: url, SERVICE_CLIENT_ID: clientId, SERVICE_CLIENT_SECRET: clientSecret };
    const child = promisify(execFile)(process.execPath, [UNCAUGHT_CHILD], { env: { ...process.env, ...service } });
    const { stderr, code } = (await failureOf(child)) as { stderr: string; code: number };
    expect(code).toBe(1);
    expect(stderr).toMatch(/\w+Error: messages\.send was answered with 4\d\d [A-Z_]+ \(request \S+\): \w/);
    expect(stderr).not.toContain("marked text");
  });
});
