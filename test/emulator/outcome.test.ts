/** The one word for why a webhook got no answer. */
import { describe, expect, it } from "vitest";
import { wordOf } from "../../src/emulator/delivery/transport.ts";

describe("wordOf()", () => {
  it.each([
    ["EGRESS_BLOCKED", "blocked"],
    ["ECONNREFUSED", "refused"],
    ["ECONNRESET", "reset"],
    ["EPIPE", "reset"],
    ["ECONNABORTED", "reset"],
    ["ETIMEDOUT", "timeout"],
    ["ENOTFOUND", "unresolved"],
    ["ENODATA", "unresolved"],
    ["EAI_AGAIN", "unresolved"],
    ["EHOSTUNREACH", "failed"],
    [undefined, "failed"],
  ])("for %s is %s (DLV-7)", (code, word) => {
    expect(wordOf(Object.assign(new Error("of the connection"), code && { code }))).toBe(word);
  });
});
