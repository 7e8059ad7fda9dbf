import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { maskedReason, textsIn } from "../../src/client/answers.ts";
import { ApiError, InvalidRequestError, OAuthError, RecipientsRejectedError } from "../../src/client/index.ts";
import { answerJson, failureOf, sendOf, startClient, startServer, startTokens } from "./support.ts";

const UNCAUGHT_CHILD = fileURLToPath(new URL("../../.build/test/client/uncaught-child.js", import.meta.url));
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
    `Text ${TEXT} is too long`,
    "Text YOUR CODE IS … is too long",
    "Text your+code+is+ready is too long",
    "Text hi is too short",
    "Text 😀😀 is too short",
    "Text 'hello there' is bad",
    'Text "hello there" is bad',
    'Text {"to":1}',
    "Text <b>",
    "Text https://example.com/x",
    "Text Bearer abc",
    "Text a%20b",
    "Text 0123456789abcdef0123456789abcdef",
    "Text dG9rZW4tb2YtYW4tYXBwbGljYXRpb24=",
    "Text secret of mine",
  ])("ends at what may have been sent: %j", (message) => {
    expect(maskedReason(message, SENT)).toBe(": Text [redacted]");
  });

  it("says nothing where nothing can be shown", () => {
    for (const message of ["", "   ", `${TEXT} is wrong`, "<html>", "+14155550123"])
      expect(maskedReason(message, SENT)).toBe("");
  });

  it("takes a short text for one word, not for a part of others", () => {
    expect(maskedReason("this thing is white", ["hi", "i"])).toBe(": this thing is white");
  });

  it("is one line of at most some 300 characters", () => {
    expect(maskedReason("word ".repeat(10_000), []).length).toBeLessThan(320);
  });

  it("is not slow on a page, or for thousands of recipients", () => {
    const startedAt = performance.now();
    maskedReason("a'".repeat(500_000), textsIn({ to: Array.from({ length: 5_000 }, (_, i) => `+1415555${i}`) }));
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});

describe("an error of a refusal", () => {
  it("says the service's reason in its message, and what was sent only by name", async () => {
    const { client, emulator } = await startClient();
    const error = await failureOf(client.messages.send(sendOf(emulator, { sendFrom: "num_unknown" })), ApiError);
    expect(error.serviceMessage).not.toBe("");
    expect(error.message).toMatch(/^messages\.send was answered with 4\d\d [A-Z_]+ \(request \S+\): \w.+\w\./);
  });

  it.each(["text", "externalReference", "to"] as const)("does not repeat the %s", async (field) => {
    const words = "marked words of a person";
    const { client } = await startServer((_, response) =>
      answerJson(response, 400, {
        error: { code: "INVALID_REQUEST", message: `Refused: ${words} is bad`, details: {} },
      }),
    );
    const request = {
      sendFrom: "num_1",
      to: ["+14155550123"],
      messageType: "SMS",
      externalReference: "order",
    } as const;
    const value = field === "to" ? ["+14155550123", words] : words;
    const error = await failureOf(client.messages.send({ ...request, [field]: value }), InvalidRequestError);
    expect(error.message).toBe("messages.send was answered with 400 INVALID_REQUEST: Refused: [redacted].");
    expect(error.serviceMessage).toBe(`Refused: ${words} is bad`);
  });

  it.each([
    ["a path", { path: "/api/core/x/marked-name" }, "marked-name"],
    ["a query", { path: "/api/core/x?q=marked%20name" }, "marked name"],
    ["a header", { path: "/api/core/x", options: { headers: { "x-who": "marked name" } } }, "marked name"],
    ["a body", { path: "/api/core/x", options: { body: { deep: [{ who: "marked name" }] } } }, "marked name"],
  ])("does not repeat what stood in %s", async (_, { path, options }: { path: string; options?: object }, echo) => {
    const { client } = await startServer((_request, response) =>
      answerJson(response, 400, { error: { code: "INVALID_REQUEST", message: `Unknown ${echo} here`, details: {} } }),
    );
    const error = await failureOf(client.request("POST", path, options), ApiError);
    expect(error.message).toContain(": Unknown [redacted].");
  });

  it("of the token route says its description", async () => {
    const description = "The client is suspended until a-secret is changed";
    const { client } = await startTokens((response) =>
      answerJson(response, 401, { error: "invalid_client", error_description: description }),
    );
    const error = await failureOf(client.whoami(), OAuthError);
    expect(error.message).toContain("401 invalid_client: The client is suspended until [redacted]. The credentials");
  });

  it("names the codes of rejected recipients", async () => {
    const { client, emulator } = await startClient();
    const sent = await client.messages.send(sendOf(emulator, { to: ["+14155550123", "12"] }));
    expect(() => sent.throwIfRejected()).toThrow(RecipientsRejectedError);
    expect(() => sent.throwIfRejected()).toThrow("1 of 2 recipients were rejected (INVALID_RECIPIENT); see errors");
  });

  it("that nobody catches is printed by node with the reason", async () => {
    const { emulator } = await startClient({ emulator: { port: 0 } });
    const env = {
      ...process.env,
      SERVICE_BASE_URL: emulator.url,
      SERVICE_CLIENT_ID: emulator.clientId,
      SERVICE_CLIENT_SECRET: emulator.clientSecret,
    };
    const ending = promisify(execFile)(process.execPath, [UNCAUGHT_CHILD], { env });
    const { stderr, code } = await ending.then(
      () => ({ stderr: "", code: 0 }),
      (error: { stderr: string; code: number }) => error,
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/\w+Error: messages\.send was answered with 4\d\d [A-Z_]+ \(request \S+\): \w/);
    expect(stderr).not.toContain("marked text");
  });
});
