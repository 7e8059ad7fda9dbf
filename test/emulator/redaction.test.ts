/** What the log shows of a text from anybody (TOK-22). */
import { describe, expect, it } from "vitest";
import { redactedText } from "../../src/emulator/http/request-log.ts";

describe("redactedText()", () => {
  it.each([
    "client_secret=abc",
    "x&client-secret = abc",
    "<webhookSecretValue>abc</webhookSecretValue>",
    '{"api_key" : "abc',
    "'TOKEN':abc",
  ])("tells of %s only its length", (text) => {
    expect(redactedText(text)).toBe(`[${text.length} bytes]`);
  });

  it.each(["ok", "no token here", "status: 200", "secret"])("shows %s as it is", (text) => {
    expect(redactedText(text)).toBe(text);
  });

  it("takes a time that grows with the text's length, and no faster", () => {
    const begun = performance.now();
    redactedText("token".repeat(50_000));
    expect(performance.now() - begun).toBeLessThan(2_000);
  });
});
