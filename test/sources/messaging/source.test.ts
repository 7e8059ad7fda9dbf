/** The messaging service as a source: which key signed a delivery, and what that key may vouch for. */
import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { QuarantineRecord } from "../../../src/inbox/record.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { Head } from "../../../src/sources/headers.ts";
import type { Keyring } from "../../../src/sources/keys.ts";
import { signPayload } from "../../../src/sources/messaging/sign.ts";
import { serviceSource } from "../../../src/sources/messaging/source.ts";
import type { ConnectedSource, Match } from "../../../src/sources/source.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { atHand } from "../keyring-provider-setup.ts";
import { NOW, OTHER_SECRET, SECRET } from "./openssl.ts";

type Headers = Readonly<Record<string, string>>;

const JUNK = "not json";
const UNSIGNED: Keyring = { inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" };
const HALF: Keyring = { inbound: "dangerouslyUnsigned", delivery: SECRET };
const signedBy = (secret: string, body = JUNK): Headers => ({ ...signPayload({ body, secret, timestamp: NOW }) });

function connected(secrets: Keyring): ConnectedSource {
  return serviceSource({ secrets }).connect("service", { clock: createFakeClock(), logger: silentLogger });
}

const keysOf = (source: ConnectedSource) => atHand(source.keyrings.read({}));
const headOf = (headers: Headers) => new Head({ headers });

/** What is found out of a body and its headers at a time. */
function found(secrets: Keyring, headers: Headers, body = JUNK, now = NOW) {
  const source = connected(secrets);
  return source.match(headOf(headers), Buffer.from(body), keysOf(source).keys, now);
}

function matchOf(result: ReturnType<typeof found>): Match {
  if (result?.ok !== true) throw new Error(`No key matched: ${JSON.stringify(result)}`);
  return result;
}

/** What is read of a body that `secret` signed; without one, of an unsigned body. */
function read(secrets: Keyring, body: string, secret: string | null, now = NOW) {
  const source = connected(secrets);
  const headers = secret === null ? {} : signedBy(secret, body);
  const head = headOf(headers);
  const match = matchOf(source.match(head, Buffer.from(body), keysOf(source).keys, NOW));
  return source.read(head, match, Buffer.from(body), { now, trace: null });
}

const eventOf = (fields: object) => JSON.stringify({ eventType: "message.new", ...fields });
const EVENTS = {
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
const ALL = Object.keys(EVENTS);
/** State neither direction, as a type to come may (RCV-11). */
const UNDIRECTED = ["unknown a", "sideways a", "null a", "odd a", "nothing"];
const a = { secret: SECRET, tenant: "a" };
const b = { secret: SECRET, tenant: "b" };

/** Names of the events for which `isTaken` holds. */
const taken = (isTaken: (body: string) => boolean) =>
  Object.entries(EVENTS)
    .filter(([, fields]) => isTaken(eventOf(fields)))
    .map(([name]) => name);

describe("refuse()", () => {
  const bare = headOf({});
  const signed = headOf(signedBy(SECRET));
  const refused = { ok: false, code: "missing_signature" };

  it("refuses a request without headers once no kind can be unsigned", () => {
    const source = connected(SECRET);
    expect(source.refuse(bare, null)).toBeNull();
    expect(source.refuse(bare, keysOf(source))).toEqual(refused);
    const half = connected(HALF);
    expect(half.refuse(bare, keysOf(half))).toBeNull();
    expect(source.refuse(bare, { ...keysOf(source), keys: [] })).toEqual(refused);
  });

  it("takes both headers for a possible proof", () => {
    const source = connected(SECRET);
    expect([source.refuse(signed, null), source.refuse(signed, keysOf(source))]).toEqual([null, null]);
  });

  it.each<[string, Headers]>([
    ["missing_timestamp", { "x-service-timestamp": "" }],
    ["missing_signature", { "x-service-signature": "" }],
    ["malformed_timestamp", { "x-service-timestamp": "soon" }],
    ["malformed_signature", { "x-service-signature": "junk" }],
    ["timestamp_too_old", { "x-service-timestamp": `${NOW / 1000 - 5_401}` }],
    ["timestamp_in_future", { "x-service-timestamp": `${NOW / 1000 + 301}` }],
  ])("says %s before any secret is read, also where a kind is unsigned (RCV-2)", (code, changes) => {
    const given = Object.entries({ ...signedBy(SECRET), ...changes }).filter(([, value]) => value !== "");
    const source = connected(HALF);
    expect(source.refuse(headOf(Object.fromEntries(given)), null)).toEqual({ ok: false, code });
  });

  it("reads the headers by the options", () => {
    const options = { secrets: SECRET, timestampFormat: "s", signatureEncoding: "base64" } as const;
    const source = serviceSource(options).connect("service", { clock: createFakeClock(), logger: silentLogger });
    const code = (headers: Headers) => source.refuse(headOf(headers), null)?.code;
    expect(code(signedBy(SECRET))).toBe("malformed_timestamp");
    expect(code({ ...signedBy(SECRET), "x-service-timestamp": `${NOW / 1000}` })).toBe("malformed_signature");
  });
});

describe("match()", () => {
  it("finds the key of a signature, and the time that is signed", () => {
    const match = matchOf(found({ current: OTHER_SECRET, next: SECRET }, signedBy(SECRET)));
    expect(match).toMatchObject({ signedAt: NOW, key: { slot: "next" } });
    expect(found(OTHER_SECRET, signedBy(SECRET))).toBeNull();
  });

  it("judges the form of both headers before the age, and the age before the signature", () => {
    const old = { "x-service-timestamp": "1000000000", "x-service-signature": "junk" };
    expect(found(SECRET, old)).toEqual({ ok: false, code: "malformed_signature" });
    const well = { ...old, "x-service-signature": "0".repeat(64) };
    expect(found(SECRET, well)).toEqual({ ok: false, code: "timestamp_too_old" });
    expect(found(SECRET, { ...well, "x-service-timestamp": `${NOW / 1000}` })).toBeNull();
  });

  it("takes a delivery of the last 90 minutes, and of the next 5", () => {
    const at = (now: number) => {
      const result = found(SECRET, signedBy(SECRET), JUNK, now);
      return result?.ok === false ? result.code : result?.ok;
    };
    const minute = 60_000;
    expect([at(NOW + 90 * minute), at(NOW + 90 * minute + 1_000)]).toEqual([true, "timestamp_too_old"]);
    expect([at(NOW - 5 * minute), at(NOW - 5 * minute - 1)]).toEqual([true, "timestamp_in_future"]);
  });

  it("names the secret that matched, also when one of its places has ended", () => {
    const secrets = { current: SECRET, previous: { secret: SECRET, validUntil: NOW + 1_000 } };
    const signers = [NOW, NOW + 1_000].map((now) => matchOf(found(secrets, signedBy(SECRET), JUNK, now)).key.signer);
    expect(new Set(signers).size).toBe(1);
    expect(signers[0]).toMatch(/^[0-9a-f]{16}$/);
  });

  it("tries no secret that has ended", () => {
    const secrets = { current: OTHER_SECRET, previous: { secret: SECRET, validUntil: NOW + 1_000 } };
    expect(found(secrets, signedBy(SECRET), JUNK, NOW + 999)?.ok).toBe(true);
    expect(found(secrets, signedBy(SECRET), JUNK, NOW + 1_000)).toBeNull();
  });

  it("matches no signature where all kinds are unsigned", () => {
    expect(found(UNSIGNED, signedBy(SECRET))).toBeNull();
    const ofNothing = createHmac("sha256", "").update(`${NOW}.${JUNK}`).digest("hex");
    expect(found(UNSIGNED, { ...signedBy(SECRET), "x-service-signature": ofNothing })).toBeNull();
  });

  it("takes a request with neither header for an unsigned one, where a kind may be", () => {
    expect(matchOf(found(HALF, {}))).toMatchObject({ signedAt: null, key: { slot: "unsigned", signer: "unsigned" } });
    expect(found(SECRET, {})).toEqual({ ok: false, code: "missing_timestamp" });
  });

  it("leaves a request with either header, and of any spelling, to the signature", () => {
    expect(found(HALF, { "x-service-signature": "" })).toEqual({ ok: false, code: "missing_timestamp" });
    expect(found(HALF, { "X-Service-Timestamp": "1" })).toEqual({ ok: false, code: "missing_signature" });
  });
});

describe("read()", () => {
  it.each<[string, Keyring, string[]]>([
    ["a secret without limits", SECRET, ALL],
    ["an inbound secret", { secret: SECRET, kind: "inbound" }, ["inbound a", "inbound b", ...UNDIRECTED]],
    ["the inbound kind", { inbound: SECRET, delivery: OTHER_SECRET }, ["inbound a", "inbound b", ...UNDIRECTED]],
    ["the delivery kind", { inbound: OTHER_SECRET, delivery: SECRET }, ["outbound a", "outbound b", ...UNDIRECTED]],
    ["both kinds by one secret", { inbound: SECRET, delivery: SECRET }, ALL],
    ["tenant a", a, ALL.filter((each) => !each.endsWith(" b"))],
    ["tenant a, outbound", { ...a, kind: "delivery" }, ["outbound a", ...UNDIRECTED]],
    ["two tenants by one secret", { current: [a, b] }, ALL],
    [
      "tenant a inbound and tenant b outbound by one secret",
      { inbound: a, delivery: b },
      ["inbound a", "outbound b", ...UNDIRECTED],
    ],
  ])("lets %s vouch only for its events (RCV-8)", (_, secrets, expected) => {
    expect(taken((body) => read(secrets, body, SECRET)?.kind === "event")).toEqual(expected);
  });

  it("lets an unsigned kind vouch only for events that state its direction", () => {
    expect(taken((body) => read(HALF, body, null)?.kind === "event")).toEqual(["inbound a", "inbound b"]);
    expect(taken((body) => read(UNSIGNED, body, null)?.kind === "event")).toEqual(ALL.slice(0, 4));
    expect(read(UNSIGNED, eventOf({ direction: "outbound" }), null)).toMatchObject({ slot: "unsigned" });
    expect(read(UNSIGNED, JUNK, null)).toBeNull();
  });

  it("names the slot of the secret for the event's own kind, until that place ends (RCV-9)", () => {
    const delivery = { current: OTHER_SECRET, previous: { secret: SECRET, validUntil: NOW + 1000 } };
    const slots = [NOW + 999, NOW + 1000].map((now) =>
      ["inbound", "outbound"].map((direction) => {
        const reading = read({ inbound: SECRET, delivery }, eventOf({ direction }), SECRET, now);
        return reading?.kind === "event" ? reading.slot : null;
      }),
    );
    expect(slots).toEqual([
      ["current", "previous"],
      ["current", null],
    ]);
  });

  it("gives an event that names no API client the tenant of its secret", () => {
    const reading = read(a, eventOf({}), SECRET);
    if (reading?.kind !== "event") throw new Error("no event");
    expect([reading.isOfKey, reading.toStore().lane.tenant]).toEqual([true, "a"]);
    const named = read(SECRET, eventOf({ apiClientId: "b" }), SECRET);
    if (named?.kind !== "event") throw new Error("no event");
    expect([named.isOfKey, named.toStore().lane.tenant]).toEqual([false, "b"]);
  });

  it.each<[string, Keyring, string | null, readonly string[]]>([
    ["a secret for all", SECRET, null, []],
    ["the inbound kind's", { inbound: SECRET, delivery: OTHER_SECRET }, null, ["inbound"]],
    ["the delivery kind's", { secret: SECRET, kind: "delivery" }, null, ["delivery"]],
    ["both kinds' one", { inbound: SECRET, delivery: SECRET }, null, ["delivery", "inbound"]],
    ["a tenant's", a, "a", []],
    ["a tenant's of one kind", { ...a, kind: "inbound" }, "a", ["inbound"]],
    ["two tenants' one", { current: [a, b] }, "a", []],
    ["one of two tenants, each for another kind", { inbound: a, delivery: b }, "a", ["inbound"]],
    ["one that is listed twice", { current: SECRET, next: SECRET }, null, []],
  ])("keeps with a body that is no event what %s may vouch for", (_, secrets, tenant, kinds) => {
    const reading = read(secrets, JUNK, SECRET);
    expect(reading).toMatchObject({
      kind: "no_event",
      quarantine: { reason: "invalid_json", slot: "current", source: "service", tenant, kinds, signedAt: NOW },
    });
  });
});

describe("release()", () => {
  const source = connected(SECRET);
  /** Whether a body that was kept under these limits is an event of them. */
  const released = (limits: { slot?: string; tenant?: string; kinds?: readonly string[] }) =>
    taken((body) => {
      const { slot = "current", tenant = null, kinds = [] } = limits;
      const row = { slot, tenant, kinds, source: "service", raw: Buffer.from(body), head: null, trace: null };
      return source.release({ ...row, signedAt: NOW } as unknown as QuarantineRecord).ok;
    });

  it.each<[string, Parameters<typeof released>[0], string[]]>([
    ["no limit", {}, ALL],
    ["the inbound kind", { kinds: ["inbound"] }, ["inbound a", "inbound b", ...UNDIRECTED]],
    ["the delivery kind", { kinds: ["delivery"] }, ["outbound a", "outbound b", ...UNDIRECTED]],
    ["both kinds", { kinds: ["delivery", "inbound"] }, ALL],
    ["a tenant", { tenant: "a" }, ALL.filter((each) => !each.endsWith(" b"))],
    ["a tenant's kind", { tenant: "b", kinds: ["delivery"] }, ["outbound b", "nothing"]],
    ["a kind that there is not", { kinds: ["payments"] }, UNDIRECTED],
    ["an unsigned kind", { slot: "unsigned", kinds: ["inbound"] }, ["inbound a", "inbound b"]],
  ])("lets a quarantined body be what its secret vouched for: %s (RCV-8)", (_, limits, expected) => {
    expect(released(limits)).toEqual(expected);
  });
});
