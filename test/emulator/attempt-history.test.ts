/** What a delivery keeps of its attempts. */
import { describe, expect, it } from "vitest";
import { countOf, withAttempt } from "../../src/emulator/delivery/attempt.ts";
import type { Attempt } from "../../src/emulator/state/records.ts";
import { configure, MINUTE, mac, newest, receive, SECRET, signatureOf, stage } from "./delivery-support.ts";

function attempt(trigger: Attempt["trigger"], at: number, responseBody = ""): Attempt {
  const made = { url: "http://127.0.0.1/", status: 500, error: null, durationMs: 0, faults: [] };
  return { trigger, at, requestHeaders: {}, responseHeaders: {}, responseBody, ...made };
}

describe("withAttempt()", () => {
  it("keeps 100: the scheduled ones and the newest", () => {
    let history = { attempts: [] as readonly Attempt[], droppedAttempts: 0 };
    const scheduled = [0, 3, 50, 99, 120];
    for (let at = 0; at < 150; at++) {
      history = withAttempt(history, attempt(scheduled.includes(at) ? "schedule" : "redelivery", at));
    }
    const newest = Array.from({ length: 97 }, (_, i) => 53 + i);
    expect(history.attempts.map(({ at }) => at)).toEqual([0, 3, 50, ...newest]);
    expect([history.droppedAttempts, countOf(history)]).toEqual([50, 150]);
  });

  it("cuts all answers but the newest to 1 KiB, between characters, once", () => {
    const long = "é".repeat(8_192);
    let history = { attempts: [] as readonly Attempt[], droppedAttempts: 0 };
    const bodies = () => history.attempts.map(({ responseBody }) => responseBody);
    for (const body of [`x${long}`, "a".repeat(1_024), long])
      history = withAttempt(history, attempt("schedule", 0, body));
    expect(bodies()).toEqual([`x${"é".repeat(508)} [cut]`, "a".repeat(1_024), long]);
    history = withAttempt(history, attempt("schedule", 0));
    expect(bodies().slice(1)).toEqual(["a".repeat(1_024), `${"é".repeat(509)} [cut]`, ""]);
    expect(Math.max(...bodies().map((body) => Buffer.byteLength(body)))).toBe(1_024);
  });
});

describe("a delivery", () => {
  it("shows how many attempts it no longer has, also after an import", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = (_, response) => void response.writeHead(500).end("z".repeat(20_000));
    const { deliveryId } = await receive(emulator);
    for (let i = 0; i < 101; i++) await emulator.control.redeliver(deliveryId);
    await emulator.clock.advance(81 * MINUTE);
    const { attempts, droppedAttempts } = newest(emulator);
    expect([attempts.length, droppedAttempts]).toEqual([100, 6]);
    expect(attempts.filter(({ trigger }) => trigger === "schedule")).toHaveLength(5);
    expect(
      attempts
        .map(({ responseBody }) => responseBody.length)
        .sort((a, b) => a - b)
        .slice(-2),
    ).toEqual([1_024, 16_384]);
    const copy = await stage();
    copy.emulator.control.importState(emulator.control.exportState());
    expect(newest(copy.emulator)).toEqual(newest(emulator));
  });

  it("is signed with its secrets in turn however many attempts it had (DLV-16)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { overlapSigning: "alternate" } });
    await configure(emulator, "inbound", { secret: "the-next-secret-of-the-tests" });
    catcher.answer = 500;
    const { deliveryId } = await receive(emulator);
    for (let i = 0; i < 103; i++) await emulator.control.redeliver(deliveryId);
    const withCurrent = catcher.caught.map((one) => signatureOf(one) !== mac(SECRET, one).toString("hex"));
    expect(withCurrent.every((isCurrent, i) => isCurrent === (i % 2 === 0))).toBe(true);
  });
});
