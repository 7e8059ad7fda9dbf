import { describe, expect, it } from "vitest";
import {
  BEGIN,
  configure,
  MINUTE,
  mac,
  newest,
  receive,
  SECRET,
  signatureOf,
  stage,
  timestampOf,
} from "./delivery-support.ts";
import { startCatcher } from "./support.ts";

const NEXT = "next-secret-of-the-tests";

describe("retries: what they send", () => {
  it("repeat the exact bytes, each with a timestamp and signature of its own (DLV-8, DLV-17)", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = 500;
    await receive(emulator);
    await emulator.clock.advance(81 * MINUTE);
    expect(new Set(catcher.caught.map(({ text }) => text)).size).toBe(1);
    const ages = catcher.caught.map((caught) => (Number(timestampOf(caught)) - BEGIN) / MINUTE);
    expect(ages).toEqual([0, 1, 6, 21, 81]);
    for (const caught of catcher.caught) expect(signatureOf(caught)).toBe(mac(SECRET, caught).toString("hex"));
  });

  it("repeat only the content where that is the reading, signed over the bytes as sent (DLV-8)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retryBody: "reserialised" } });
    catcher.answer = 500;
    await receive(emulator, 'quotes " and \u2028 and 🎉');
    await emulator.clock.advance(81 * MINUTE);
    expect(catcher.caught[0]?.text).toBe(emulator.control.events()[0]?.body);
    expect(new Set(catcher.caught.map(({ text }) => text)).size).toBe(5);
    expect(Object.keys(catcher.caught[1]?.event)).toEqual(Object.keys(catcher.caught[0]?.event).reverse());
    for (const caught of catcher.caught) {
      expect(caught.event).toEqual(catcher.caught[0]?.event);
      expect(signatureOf(caught)).toBe(mac(SECRET, caught).toString("hex"));
    }
  });

  it("repeat a body that is no JSON, as only an import brings one, as it is (DLV-8)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retryBody: "reserialised" } });
    catcher.answer = 500;
    await receive(emulator);
    const exported = structuredClone(emulator.control.exportState());
    const events = exported.tables.events as Record<string, { body: string }>;
    const bodies = ["{ no JSON", `${"[".repeat(50_000)}${"]".repeat(50_000)}`];
    for (const body of bodies) {
      for (const event of Object.values(events)) event.body = body;
      emulator.control.importState(exported);
      await emulator.clock.advance(81 * MINUTE);
      expect(newest(emulator)).toMatchObject({ state: "failed", scheduledAttempts: 5 });
    }
    expect([...new Set(catcher.caught.slice(1).map(({ text }) => text))]).toEqual(bodies);
  });

  it("keep the first attempt's timestamp and secret where that is the reading (DLV-17)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retrySignature: "frozen" } });
    catcher.answer = 500;
    await receive(emulator);
    await configure(emulator, "inbound", { secret: NEXT });
    await emulator.clock.advance(81 * MINUTE);
    expect(catcher.caught).toHaveLength(5);
    for (const caught of catcher.caught) {
      expect(timestampOf(caught)).toBe(String(BEGIN));
      expect(signatureOf(caught)).toBe(mac(SECRET, caught).toString("hex"));
    }
    await receive(emulator);
    expect(signatureOf(catcher.caught[5])).toBe(mac(NEXT, catcher.caught[5]).toString("hex"));
  });

  it("stay unsigned where the frozen first attempt was (DLV-17)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retrySignature: "frozen" } });
    catcher.answer = 500;
    await configure(emulator, "inbound", { signingEnabled: false });
    await receive(emulator);
    await configure(emulator, "inbound", { signingEnabled: true });
    await emulator.clock.advance(MINUTE);
    expect(catcher.caught.map(signatureOf)).toEqual([undefined, undefined]);
  });

  it("go to the target and carry the secret of their own time (DLV-18)", async () => {
    const { emulator, catcher } = await stage();
    const other = await startCatcher();
    catcher.answer = 500;
    await receive(emulator);
    await configure(emulator, "inbound", { endpointUrl: other.url, secret: NEXT });
    await emulator.clock.advance(MINUTE);
    expect(newest(emulator).attempts.map(({ url }) => url)).toEqual([catcher.url, other.url]);
    expect(signatureOf(other.caught[0])).toBe(mac(NEXT, other.caught[0]).toString("hex"));
  });

  it("go where the event was to go, with its secret, where that is the reading (DLV-18)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { resolveTarget: "event" } });
    const other = await startCatcher();
    catcher.answer = 500;
    await receive(emulator);
    await configure(emulator, "inbound", { endpointUrl: other.url, secret: NEXT, enabled: false });
    await emulator.clock.advance(MINUTE);
    expect(catcher.caught).toHaveLength(2);
    expect(other.caught).toEqual([]);
    expect(signatureOf(catcher.caught[1])).toBe(mac(SECRET, catcher.caught[1]).toString("hex"));
  });
});
