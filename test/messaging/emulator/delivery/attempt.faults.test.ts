import { describe, expect, it } from "vitest";
import type { FaultRule } from "../../../../src/messaging/emulator/index.ts";
import { BEGIN, configure, MINUTE, mac, newest, receive, SECRET, stage } from "../delivery-support.ts";
import type { Caught } from "../support.ts";

type Action = Exclude<FaultRule, { match: { route: string } }>["action"];

/** The first attempt goes wrong; what is caught is that one and its retry. */
async function spoilt(action: Action, unspecified = {}) {
  const { emulator, catcher } = await stage({ unspecified, faults: [{ match: { webhook: true }, action, times: 1 }] });
  catcher.answer = 401;
  await receive(emulator);
  catcher.answer = 200;
  await emulator.clock.advance(MINUTE);
  const [bad, good] = catcher.caught as [Caught, Caught];
  const { attempts, state } = newest(emulator);
  expect(attempts.map(({ faults }) => faults)).toEqual([[action.type], []]);
  expect(state).toBe("delivered");
  return { bad, good };
}

const ENCODINGS = ["hex", "HEX", "base64", "base64url", "sha256=hex", "v1=hex"] as const;
const signedRight = (caught: Caught) => caught.signature === mac(SECRET, caught).toString("hex");
const isUtf8 = ({ raw }: Caught) => Buffer.from(raw.toString("utf8")).equals(raw);

describe("faults of one attempt", () => {
  it("corruptBody: bytes change after signing, the length stays, and the retry is right (RCV-2)", async () => {
    const { bad, good } = await spoilt({ type: "corruptBody" });
    expect(bad.raw.equals(good.raw)).toBe(false);
    expect(bad.raw.length).toBe(good.raw.length);
    expect([signedRight(bad), signedRight(good)]).toEqual([false, true]);
    expect(bad.signature).toBe(mac(SECRET, { ...bad, raw: good.raw }).toString("hex"));
  });

  it("invalidUtf8: the body is no UTF-8, and correctly signed; lenient decoders find JSON in it", async () => {
    const { bad, good } = await spoilt({ type: "invalidUtf8" });
    expect([isUtf8(bad), isUtf8(good)]).toEqual([false, true]);
    expect(signedRight(bad)).toBe(true);
    expect(JSON.parse(bad.text).eventType).toBe("message.inbound");
  });

  it.each(ENCODINGS)("badSignature: of the right form (%s), but wrong", async (signatureEncoding) => {
    const { bad, good } = await spoilt({ type: "badSignature" }, { signatureEncoding });
    const form = /^((?:sha256|v1)=)?([\w+/-]{43,64}=?)$/;
    const [, prefix, digits] = form.exec(String(bad.signature)) ?? [];
    expect(String(bad.signature)).toHaveLength(String(good.signature).length);
    expect(prefix).toBe(form.exec(String(good.signature))?.[1]);
    const encoding = signatureEncoding.startsWith("base64") ? (signatureEncoding as "base64") : "hex";
    const bytes = Buffer.from(String(digits), encoding);
    expect(bytes).toHaveLength(32);
    expect(bytes.equals(mac(SECRET, bad))).toBe(false);
    expect(bytes.subarray(1).equals(mac(SECRET, bad).subarray(1))).toBe(true);
  });

  it("badSignature: neither of two is right", async () => {
    const { emulator, catcher } = await stage({
      unspecified: { overlapSigning: "both" },
      faults: [{ match: { webhook: true }, action: { type: "badSignature" } }],
    });
    await configure(emulator, "inbound", { secret: "next-secret-of-the-tests" });
    await receive(emulator);
    const caught = catcher.caught[0]!;
    const right = ["next-secret-of-the-tests", SECRET].map((key) => mac(key, caught).toString("hex"));
    const sent = String(caught.signature).split(", ");
    expect(sent.map((one, i) => [one.length, one === right[i], one.slice(1) === right[i]?.slice(1)])).toEqual([
      [64, false, true],
      [64, false, true],
    ]);
  });

  it.each(["utf8", "base64", "hex"] as const)("wrongSecret: in form, by no known key (%s)", async (secretEncoding) => {
    const { bad, good } = await spoilt({ type: "wrongSecret" }, { secretEncoding });
    expect(bad.signature).toMatch(/^[0-9a-f]{64}$/);
    expect([signedRight(bad), signedRight(good)]).toEqual([false, true]);
  });

  it.each(["timestamp", "signature"] as const)("missingHeader: %s (RCV-2)", async (header) => {
    const { bad, good } = await spoilt({ type: "missingHeader", header });
    expect(bad.headers[`x-service-${header}`]).toBeUndefined();
    expect(Object.keys(bad.headers).filter((name) => name.startsWith("x-service"))).toHaveLength(1);
    expect(signedRight(good)).toBe(true);
  });

  it("unsigned: neither header (DLV-4)", async () => {
    const { bad, good } = await spoilt({ type: "unsigned" });
    expect(Object.keys(bad.headers).filter((name) => name.startsWith("x-service"))).toEqual([]);
    expect(signedRight(good)).toBe(true);
  });

  it.each([
    ["staleTimestamp", undefined, -86_400_000],
    ["staleTimestamp", 301_000, -301_000],
    ["futureTimestamp", undefined, 86_400_000],
    ["futureTimestamp", 61_000, 61_000],
  ] as const)("%s: %s ms away, correctly signed (DLV-13)", async (type, ms, shift) => {
    const { bad, good } = await spoilt(ms === undefined ? { type } : { type, ms });
    expect(bad.timestamp).toBe(String(BEGIN + shift));
    expect(good.timestamp).toBe(String(BEGIN + MINUTE));
    expect([signedRight(bad), signedRight(good)]).toEqual([true, true]);
  });

  it("staleTimestamp: freezes nothing but the true time (DLV-17)", async () => {
    const { good } = await spoilt({ type: "staleTimestamp" }, { retrySignature: "frozen" });
    expect(good.timestamp).toBe(String(BEGIN));
  });

  it.each(["text/plain", "application/json; charset=latin1", "!", "~".repeat(128)])(
    "contentType: another one, for this attempt only (DLV-11): %s",
    async (value) => {
      const { bad, good } = await spoilt({ type: "contentType", value });
      expect([bad.headers["content-type"], good.headers["content-type"]]).toEqual([value, "application/json"]);
      expect([bad.method, signedRight(bad)]).toEqual(["POST", true]);
    },
  );

  it("dribble: the body takes its time, and arrives whole; the next one does not", async () => {
    const faults = [{ match: { webhook: true }, action: { type: "dribble", ms: 450 }, times: 1 }] as const;
    const { emulator, catcher } = await stage({ faults });
    const begun = performance.now();
    expect(await receive(emulator)).toMatchObject({ attempts: [{ status: 200, faults: ["dribble"] }] });
    const slow = performance.now() - begun;
    expect(slow).toBeGreaterThan(400);
    expect(catcher.caught[0]?.text).toBe(emulator.control.events()[0]?.body);
    await receive(emulator);
    expect(emulator.control.attempts().map(({ faults }) => faults)).toEqual([["dribble"], []]);
  });

  it("several at once, and none of them where nothing is signed or sent", async () => {
    const actions: Action[] = [
      { type: "badSignature" },
      { type: "wrongSecret" },
      { type: "contentType", value: "a/b" },
    ];
    const { emulator, catcher } = await stage({
      faults: actions.map((action) => ({ match: { webhook: true }, action })),
    });
    await configure(emulator, "inbound", { signingEnabled: false });
    const { attempts } = await receive(emulator);
    expect(attempts[0]?.faults).toEqual(["badSignature", "wrongSecret", "contentType"]);
    expect(Object.keys(catcher.caught[0]?.headers ?? {}).filter((name) => name.startsWith("x-service"))).toEqual([]);
    expect(catcher.caught[0]?.headers["content-type"]).toBe("a/b");
    await configure(emulator, "inbound", { signingEnabled: false, enabled: false });
    await receive(emulator);
    expect(emulator.control.faults.list().map(({ played }) => played)).toEqual([1, 1, 1]);
  });
});
