/** Scopes as texts that are stored with what a secret vouched for. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { compileKeyring, type Keyring } from "../../src/signature/keyring.ts";
import { scopeCovers, scopeOf } from "../../src/signature/verify.ts";
import { NOW, OTHER_SECRET, SECRET } from "./openssl.ts";

const digest = (id: string) => createHash("sha256").update(id).digest("hex").slice(0, 32);
const a = { secret: SECRET, apiClientId: "a" };
const b = { secret: SECRET, apiClientId: "b" };

function scope(keyring: Keyring): string {
  const key = compileKeyring(keyring, NOW).keys[0];
  if (key === undefined) throw new Error("The keyring is empty.");
  return scopeOf(key);
}

describe("scopeOf()", () => {
  it.each<[string, Keyring, string]>([
    ["a secret for all", SECRET, "any"],
    ["the inbound kind's", { inbound: SECRET, delivery: OTHER_SECRET }, "inbound"],
    ["the delivery kind's", { secret: SECRET, direction: "outbound" }, "delivery"],
    ["both kinds' one", { inbound: SECRET, delivery: SECRET }, "inbound,delivery"],
    ["a client's", a, `any:${digest("a")}`],
    ["a client's of one kind", { ...a, direction: "inbound" }, `inbound:${digest("a")}`],
    ["two clients' one", { current: [a, b] }, `any:${digest("a")},any:${digest("b")}`],
    ["one that is listed twice", { current: SECRET, next: SECRET }, "any"],
  ])("names %s", (_, keyring, expected) => {
    expect(scope(keyring)).toBe(expected);
  });
});

describe("scopeCovers()", () => {
  const events = {
    "inbound a": { direction: "inbound", apiClientId: "a" },
    "inbound b": { direction: "inbound", apiClientId: "b" },
    "outbound a": { direction: "outbound", apiClientId: "a" },
    "outbound b": { direction: "outbound", apiClientId: "b" },
    "a client that is no text": { apiClientId: ["a"] },
    nothing: {},
  };
  const covered = (text: string) =>
    Object.entries(events)
      .filter(([, event]) => scopeCovers(text, event))
      .map(([name]) => name);

  it.each<[string, string[]]>([
    ["any", Object.keys(events)],
    ["inbound", ["inbound a", "inbound b", "a client that is no text", "nothing"]],
    ["delivery", ["outbound a", "outbound b", "a client that is no text", "nothing"]],
    [`any:${digest("a")}`, ["inbound a", "outbound a", "nothing"]],
    [`delivery:${digest("b")}`, ["outbound b", "nothing"]],
    [`inbound:${digest("a")},delivery:${digest("b")}`, ["inbound a", "outbound b", "nothing"]],
  ])("takes %s for what scopeOf() meant (RCV-8)", (text, expected) => {
    expect(covered(text)).toEqual(expected);
  });

  it.each(["", "all", "anything", "not any", "any:", "any:a", `any:${digest("a")}0`, "any:undefined", "unsigned"])(
    "covers nothing by %j",
    (text) => {
      expect(covered(text)).toEqual([]);
    },
  );
});
