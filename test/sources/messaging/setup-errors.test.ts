/** What is said of each wrong option about secrets and signatures, word for word: the message is what a user has to go by. */
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { OncehookError } from "../../../src/errors.ts";
import { stderrLogger } from "../../../src/internal/logger.ts";
import { keyringsFrom } from "../../../src/sources/keyring-provider.ts";
import { compileKeys, type KeyringContext } from "../../../src/sources/keys.ts";
import {
  checkKind,
  checkRevision,
  checkSlots,
  type SecretStore,
  secretStoreOption,
  slotsFromText,
} from "../../../src/sources/messaging/secret-store.ts";
import { signPayload } from "../../../src/sources/messaging/sign.ts";
import { verifySignature } from "../../../src/sources/messaging/verify-signature.ts";
import { checkSecret, STRICT_RULES } from "../../../src/sources/secret.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { NOW, OTHER_SECRET, SECRET } from "./openssl.ts";

const DAY = 86_400_000;
const EMPTY = { current: null, previous: [], next: null, rotatedAt: null };
const NEXT = { secret: SECRET, since: NOW, rotatedAtBefore: null, hadSecret: true };
const A = { secret: `${SECRET}-a`, tenant: "a" };
const B = { secret: `${SECRET}-b`, tenant: "b" };
const HEADERS = { "x-service-timestamp": "1", "x-service-signature": "" };

/** For values that only JavaScript lets through. */
const keyring = (value: unknown, context?: KeyringContext) => () => compileKeys(value, STRICT_RULES, NOW, context);
const previous = (validUntil: unknown) => keyring({ current: SECRET, previous: { secret: OTHER_SECRET, validUntil } });
const sign = (options: object) => () => signPayload({ body: "", secret: SECRET, ...options });
const verify = (options: object) => () => verifySignature({ headers: HEADERS, body: "", secrets: SECRET, ...options });
const slots = (value: object) => () => checkSlots({ ...EMPTY, ...value }, "utf8");
const text = (value: unknown) => () => slotsFromText(JSON.stringify(value), { place: "the store", encoding: "utf8" });
const store = (value: unknown) => () => secretStoreOption("secrets", value as SecretStore);
const methods = { read() {}, write() {}, receivers() {}, close() {} };

const WRONG: Readonly<Record<string, () => unknown>> = {
  "no keyring": keyring(undefined),
  "a number for a keyring": keyring(42),
  "null for a secret": keyring({ current: null }),
  "an empty text": keyring(""),
  "white space": keyring(" ".repeat(20)),
  "a short secret": keyring("short"),
  "a secret that is no text": keyring({ secret: 8412345678901234 }),
  "an unknown field of a secret": keyring({ secret: SECRET, zzzzzzzzzzzzzz: 1 }),
  "an unknown field of a previous secret": keyring({
    current: SECRET,
    previous: { secret: SECRET, zzzzzzzzzzzzzz: 1, validUntil: NOW },
  }),
  "a bare list": keyring([SECRET, OTHER_SECRET]),
  "a bare list of one kind": keyring({ inbound: [SECRET], delivery: SECRET }),
  "a list in a list": keyring({ current: [[SECRET]] }),
  "a misspelt kind": keyring({ inbund: SECRET }),
  "two misspelt kinds": keyring({ inbund: SECRET, delivry: SECRET }),
  "a kind in a kind": keyring({ inbound: { inbund: SECRET }, delivery: SECRET }),
  "an unknown slot": keyring({ current: SECRET, zzzzzzzzzzzzzz: 1 }),
  "an unknown encoding of a secret": keyring({ secret: SECRET, encoding: "latin1" }),
  "hex that is none": keyring({ secret: "zz".repeat(20), encoding: "hex" }),
  "base64 that is none": keyring({ secret: "**".repeat(20), encoding: "base64" }),
  "an empty tenant": keyring({ secret: SECRET, tenant: "" }),
  "a tenant that is no text": keyring({ secret: SECRET, tenant: 5 }),
  "an unknown kind of a secret": keyring({ secret: SECRET, kind: "sideways" }),
  "unsigned for all": keyring("dangerouslyUnsigned"),
  "an empty list": keyring({ current: [] }),
  "an empty list beside a previous secret": keyring({
    current: [],
    previous: { secret: SECRET, validUntil: NOW + DAY },
  }),
  "an empty list of one kind": keyring({ inbound: SECRET, delivery: { current: [] } }),
  "an empty next": keyring({ current: SECRET, next: "" }),
  "an empty text in a list": keyring({ current: [SECRET, ""] }),
  "only one kind": keyring({ inbound: SECRET }),
  "null for a kind": keyring({ inbound: null, delivery: SECRET }),
  "kinds beside slots": keyring({ inbound: SECRET, delivery: SECRET, zzzzzzzzzzzzzz: SECRET }),
  "a secret of another kind than its keyring": keyring({
    inbound: { secret: SECRET, kind: "delivery" },
    delivery: OTHER_SECRET,
  }),
  "a bare previous": keyring({ current: SECRET, previous: OTHER_SECRET }),
  "an end that is no number": previous("soon"),
  "an end in seconds": previous(NOW / 1000),
  "an end too far": previous(NOW + 8 * DAY + 1),
  "nine secrets": keyring({ current: Array.from({ length: 9 }, (_, index) => `${SECRET}-${index}`) }),
  "a secret without a tenant among several": keyring({ current: [A, B, SECRET] }),
  "a look-up that does not say whose secret it is": keyring(SECRET, { tenant: "a" }),
  "a look-up of a tenant with an unsigned kind": keyring(
    { inbound: "dangerouslyUnsigned", delivery: A },
    { tenant: "a" },
  ),
  "a kind of a source without kinds": () =>
    compileKeys({ secret: SECRET, kind: "inbound" }, { ...STRICT_RULES, kinds: [] }, NOW),
  "unsigned for a source without kinds": () => compileKeys("dangerouslyUnsigned", { ...STRICT_RULES, kinds: [] }, NOW),
  "an unsigned kind where only signed ones are taken": () =>
    compileKeys({ inbound: "dangerouslyUnsigned", delivery: SECRET }, { ...STRICT_RULES, mayBeUnsigned: false }, NOW),
  "null for a secret of any length": () => compileKeys({ current: null }, { ...STRICT_RULES, leastBytes: 1 }, NOW),
  "an unknown field of a secret alone": () => checkSecret("secret", { secret: SECRET, zzzzzzzzzzzzzz: 1 }),
  "a secret alone that is too short": () => checkSecret("secret", "short"),
  "a keyring source of null": () =>
    keyringsFrom(null as never, STRICT_RULES, { clock: createFakeClock(), logger: stderrLogger }),
  "no object of options": () => verifySignature(undefined as never),
  "an unknown option": verify({ zzzzzzzzzzzzzz: 1 }),
  "no headers": verify({ headers: undefined }),
  "null for headers": verify({ headers: null }),
  "a parsed body": verify({ body: {} }),
  "a time that is none": verify({ now: Number.NaN }),
  "no tolerance": verify({ toleranceMs: 0 }),
  "no tolerance of the past": verify({ toleranceMs: { pastMs: 0 } }),
  "an unknown format of timestamps": verify({ timestampFormat: "us" }),
  "an unknown encoding of signatures": verify({ encoding: "HEX" }),
  "signing in an unknown encoding": sign({ encoding: "Hex" }),
  "signing with an unknown unit": sign({ unit: "us" }),
  "signing at no time": sign({ timestamp: Number.NaN }),
  "signing with an empty secret": sign({ secret: "" }),
  "signing with a number": sign({ secret: { secret: 5 } }),
  "signing with an unknown encoding of the secret": sign({ secret: { secret: "x", encoding: "latin1" } }),
  "signing with hex that is none": sign({ secret: { secret: "xyz", encoding: "hex" } }),
  "no secret store": store(null),
  "a secret store without a method": store({ ...methods, close: undefined }),
  "a secret store without an interval": store(methods),
  "a secret store with an unknown encoding": store({ ...methods, refreshMs: 1_000, encoding: "latin1" }),
  "an unknown kind": () => checkKind("outbound"),
  "a revision below 0": () => checkRevision(-1),
  "a fraction of a revision": () => checkRevision(1.5),
  "a revision as a text": () => checkRevision("1"),
  "slots with an unknown one": slots({ zzzzzzzzzzzzzz: 1 }),
  "slots with a scoped secret": slots({ current: { secret: SECRET } }),
  "slots with a previous that is no list": slots({ previous: {} }),
  "slots with a short previous": slots({ previous: [{ secret: "short", validUntil: NOW }] }),
  "slots with a previous that ends never": slots({ previous: [{ secret: SECRET, validUntil: "never" }] }),
  "slots with an unknown field of a previous": slots({ previous: [{ zzzzzzzzzzzzzz: 1 }] }),
  "slots with a short next": slots({ next: { ...NEXT, secret: "short" } }),
  "slots with a next of no time": slots({ next: { ...NEXT, since: null } }),
  "slots with a next that follows no time": slots({ next: { ...NEXT, rotatedAtBefore: "x" } }),
  "slots with a next that does not say what was": slots({ next: { ...NEXT, hadSecret: 1 } }),
  "slots with an unknown field of the next": slots({ next: { ...NEXT, zzzzzzzzzzzzzz: 1 } }),
  "slots with no time of the last rotation": slots({ rotatedAt: "x" }),
  "a text of a later format": text({ ...EMPTY, oncehook: 2 }),
  "a text with a next that is none": text({ ...EMPTY, oncehook: 1, next: 5 }),
  "a text that is no JSON": () => slotsFromText(SECRET, { place: "the store", encoding: "utf8" }),
};

describe("the errors of wrong options", () => {
  it.each(Object.entries(WRONG))("say what is wrong about %s", (_, act) => {
    const error = failureOf(act);
    expect(error).toBeInstanceOf(OncehookError);
    expect(shownOf(error)).toMatchSnapshot();
    expect(inspect(error, { depth: 9 })).not.toContain(SECRET);
  });
});

function failureOf(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

/** All that a user or a program can see of it. */
function shownOf(error: unknown): unknown {
  if (!(error instanceof OncehookError)) return error;
  const { name, code, message, fields, cause } = error;
  return { name, code, message, fields, ...(cause === undefined ? {} : { cause: shownOf(cause) }) };
}
