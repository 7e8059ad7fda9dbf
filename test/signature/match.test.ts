import { describe, expect, it } from "vitest";
import { compileKeyring, type Keyring } from "../../src/signature/keyring.ts";
import { signPayload } from "../../src/signature/sign.ts";
import {
  checkHeaders,
  DEFAULT_TOLERANCE,
  matchSignature,
  matchUnsigned,
  vouchesFor,
  vouchingMatch,
} from "../../src/signature/verify.ts";
import { NOW, OTHER_SECRET, SECRET } from "./openssl.ts";

const policy = { tolerance: DEFAULT_TOLERANCE };
const body = "{}";

function match(secrets: Keyring, secret = SECRET, now = NOW) {
  const checked = checkHeaders(signPayload({ body, secret, timestamp: NOW }), policy, NOW);
  if (!checked.ok) throw new Error(checked.code);
  return matchSignature(checked, body, compileKeyring(secrets, NOW), now);
}

describe("checkHeaders()", () => {
  it("hands on the timestamp's text as received and 32-byte candidates", () => {
    const headers = signPayload({ body, secret: SECRET, timestamp: NOW, unit: "s" });
    const checked = checkHeaders(headers, policy, NOW);
    expect(checked).toMatchObject({ ok: true, timestampText: "1760000000", timestamp: NOW });
    expect(checked.ok && checked.candidates.map((each) => each.length)).toEqual([32]);
  });

  it("judges the form of both headers before the age", () => {
    const headers = { "x-service-timestamp": "1000000000", "x-service-signature": "junk" };
    expect(checkHeaders(headers, policy, NOW)).toEqual({ ok: false, code: "malformed_signature" });
    const well = { ...headers, "x-service-signature": "0".repeat(64) };
    expect(checkHeaders(well, policy, NOW)).toEqual({ ok: false, code: "timestamp_too_old" });
  });
});

describe("vouchesFor()", () => {
  const events = {
    "inbound a": { direction: "inbound", apiClientId: "a" },
    "inbound b": { direction: "inbound", apiClientId: "b" },
    "outbound a": { direction: "outbound", apiClientId: "a" },
    "outbound b": { direction: "outbound", apiClientId: "b" },
    "unknown a": { apiClientId: "a" },
    "sideways a": { direction: "sideways", apiClientId: "a" },
    "null a": { direction: null, apiClientId: "a" },
    "odd a": { direction: ["inbound"], apiClientId: "a" },
    nothing: {},
  };
  /** State neither direction, as a type to come may (RCV-11). */
  const undirected = ["unknown a", "sideways a", "null a", "nothing"];
  const a = { secret: SECRET, apiClientId: "a" };
  const b = { secret: SECRET, apiClientId: "b" };
  const all = Object.keys(events);

  it.each<[string, Keyring, string[]]>([
    ["an unscoped secret", SECRET, all],
    ["an inbound secret", { secret: SECRET, direction: "inbound" }, ["inbound a", "inbound b", ...undirected]],
    ["the inbound kind", { inbound: SECRET, delivery: OTHER_SECRET }, ["inbound a", "inbound b", ...undirected]],
    ["the delivery kind", { inbound: OTHER_SECRET, delivery: SECRET }, ["outbound a", "outbound b", ...undirected]],
    ["both kinds by one secret", { inbound: SECRET, delivery: SECRET }, all.filter((each) => each !== "odd a")],
    ["client a", a, all.filter((each) => !each.endsWith(" b"))],
    ["client a, outbound", { ...a, direction: "outbound" }, ["outbound a", ...undirected]],
    ["two clients by one secret", { current: [a, b] }, all],
    [
      "client a inbound and client b outbound by one secret",
      { inbound: a, delivery: b },
      ["inbound a", "outbound b", ...undirected],
    ],
  ])("lets %s vouch only for its events (RCV-8)", (_, secrets, expected) => {
    const key = match(secrets)?.key;
    const vouched = Object.entries(events).filter(([, event]) => key && vouchesFor(key, event));
    expect(vouched.map(([name]) => name)).toEqual(expected);
  });

  it("lets no tenant sign for another", () => {
    const clients = ["a", "b", "c", "d"];
    const current = clients.map((apiClientId) => ({ secret: `${SECRET}-${apiClientId}`, apiClientId }));
    for (const signer of clients) {
      const key = match({ current }, `${SECRET}-${signer}`)?.key;
      expect(clients.filter((apiClientId) => key && vouchesFor(key, { apiClientId }))).toEqual([signer]);
    }
  });
});

describe("matchSignature()", () => {
  it("names scopes without ids", () => {
    const scope = (secrets: Keyring) => match(secrets)?.scope;
    expect(scope(SECRET)).toBe("any");
    expect(scope({ inbound: SECRET, delivery: OTHER_SECRET })).toBe("inbound");
    expect(scope({ inbound: OTHER_SECRET, delivery: SECRET })).toBe("delivery");
    expect(scope({ secret: SECRET, apiClientId: "client-17" })).toBe("client");
  });

  it("ends one grant of a secret without the other: current of a kind, previous of the other (RCV-9)", () => {
    const secrets = {
      inbound: SECRET,
      delivery: { current: OTHER_SECRET, previous: { secret: SECRET, validUntil: NOW + 1000 } },
    };
    const before = match(secrets, SECRET, NOW + 999);
    const after = match(secrets, SECRET, NOW + 1000);
    const slots = [before, after].map((each) =>
      ["inbound", "outbound"].map((direction) => each && vouchingMatch(each, { direction })?.slot),
    );
    expect(slots).toEqual([
      ["current", "previous"],
      ["current", undefined],
    ]);
    expect(after && vouchesFor(after.key, { direction: "outbound" })).toBe(false);
  });

  it("limits a previous secret as much as a current one", () => {
    const previous = { secret: SECRET, direction: "inbound", validUntil: NOW + 1000 } as const;
    const key = match({ current: OTHER_SECRET, previous })?.key;
    expect(key && vouchesFor(key, { direction: "inbound" })).toBe(true);
    expect(key && vouchesFor(key, { direction: "outbound" })).toBe(false);
  });

  it("matches nothing of an empty keyring", () => {
    expect(match({ inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" })).toBeNull();
  });
});

describe("matchUnsigned()", () => {
  const half = compileKeyring({ inbound: "dangerouslyUnsigned", delivery: SECRET }, NOW);
  const both = compileKeyring({ inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" }, NOW);

  it("names the secret that matched, also when one of its places has ended", () => {
    const previous = { secret: SECRET, validUntil: NOW + 1_000 };
    const both = { current: SECRET, previous };
    const [key] = compileKeyring(both, NOW).keys;
    const names = [match(both), match(both, SECRET, NOW + 1_000)].map((found) => found?.key.signer);
    expect(names).toEqual([key?.signer, key?.signer]);
    expect(match(both, SECRET, NOW + 1_000)?.key.grants).toHaveLength(1);
  });

  it("vouches only for events that state a direction of an unsigned kind", () => {
    const found = matchUnsigned({}, half);
    expect(found).toMatchObject({ slot: "unsigned", scope: "inbound", index: 0, key: { signer: "unsigned" } });
    expect(found && vouchesFor(found.key, { direction: "inbound" })).toBe(true);
    expect(found && vouchesFor(found.key, { direction: "outbound" })).toBe(false);
    expect(found && vouchesFor(found.key, {})).toBe(false);
    const any = matchUnsigned({}, both);
    expect(any && vouchingMatch(any, { direction: "outbound" })).toMatchObject({ slot: "unsigned", scope: "delivery" });
    expect(any && vouchesFor(any.key, { direction: "sideways" })).toBe(false);
  });

  it("leaves a request with either header, and a signed keyring, to the signature", () => {
    expect(matchUnsigned({ "x-service-signature": "" }, half)).toBeNull();
    expect(matchUnsigned({ "X-Service-Timestamp": "1" }, half)).toBeNull();
    expect(matchUnsigned({}, compileKeyring(SECRET, NOW))).toBeNull();
  });
});
