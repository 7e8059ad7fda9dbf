import { describe, expect, it } from "vitest";
import type { EmulatorOptions } from "../../src/emulator/index.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { MINUTE, mac, newest, receive, SECRET, signatureOf, stage, timestampOf } from "./delivery-support.ts";
import { start } from "./support.ts";

const FROZEN = { timestampClock: "real", unspecified: { retrySignature: "frozen" } } as const;

/** A first attempt that failed, on a system clock that the test moves. */
async function failedOnce(options: EmulatorOptions) {
  const system = createFakeClock();
  const begun = system.now();
  const { emulator, catcher } = await stage({ ...FROZEN, systemClock: system, ...options });
  catcher.answer = 500;
  await receive(emulator);
  /** How old each attempt's timestamp is for who reads the system's clock as it stood at the first one. */
  const ages = () => {
    for (const caught of catcher.caught) expect(signatureOf(caught)).toBe(mac(SECRET, caught).toString("hex"));
    return catcher.caught.map((caught) => begun - Number(timestampOf(caught)));
  };
  return { system, emulator, catcher, ages };
}

describe("a frozen signature and the real time (DLV-17)", () => {
  it("is the first attempt's own text while the emulator's time runs with the real one, whatever the wall clock does", async () => {
    const { system, emulator, catcher } = await failedOnce({ clock: "real" });
    await system.advance(7.3);
    system.set(system.now() - 3_600_000);
    await system.advance(MINUTE);
    await emulator.clock.idle();
    system.set(system.now() + 86_400_000);
    await system.advance(5 * MINUTE);
    await emulator.clock.idle();
    expect(newest(emulator).attempts).toHaveLength(3);
    expect(new Set(catcher.caught.map(timestampOf)).size).toBe(1);
    expect(new Set(catcher.caught.map(signatureOf)).size).toBe(1);
  });

  it("is that text for an emulator that takes up the state, too", async () => {
    const { system, emulator, catcher } = await failedOnce({ clock: "real" });
    const exported = emulator.control.exportState();
    await emulator.close();
    await system.advance(7 * MINUTE);
    const second = await start({ ...FROZEN, systemClock: system, clock: "real" });
    second.control.importState(exported);
    await second.clock.idle();
    expect(catcher.caught).toHaveLength(2);
    expect(new Set(catcher.caught.map(timestampOf)).size).toBe(1);
  });

  it("grows older by what the emulator's time is moved ahead", async () => {
    const { emulator, ages } = await failedOnce({ clock: "real" });
    await emulator.clock.advance(81 * MINUTE);
    expect(ages()).toEqual([0, 1, 6, 21, 81].map((minutes) => minutes * MINUTE));
  });

  it("grows older by that alone: what the receiver's clock did itself is not counted twice", async () => {
    const { system, emulator, ages } = await failedOnce({ clock: "real" });
    await system.advance(MINUTE);
    await emulator.clock.idle();
    await emulator.clock.advance(5 * MINUTE);
    expect(ages()).toEqual([0, 0, 5 * MINUTE]);
  });

  it("grows older by a speed", async () => {
    const { system, emulator, ages } = await failedOnce({ clock: "x60" });
    await system.advance(1_000);
    await emulator.clock.idle();
    // A second later for the receiver: a minute in all.
    expect(ages()).toEqual([0, 59_000]);
  });

  it("is as old as it is on a virtual clock, however long the real one ran", async () => {
    const { system, emulator, ages } = await failedOnce({ clock: "virtual" });
    await system.advance(2_500);
    await emulator.clock.advance(MINUTE);
    expect(ages()).toEqual([0, MINUTE - 2_500]);
  });
});
