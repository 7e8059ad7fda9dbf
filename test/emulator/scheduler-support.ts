/** What the tests of the scheduler share: one on a fake clock, and tasks that end when a test says so. */
import { type ClockMode, createTime } from "../../src/emulator/clock.ts";
import { Scheduler, type SchedulerOptions } from "../../src/emulator/scheduler.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";

export const MINUTE = 60_000;

export function ground(mode: ClockMode = "virtual", options: Pick<SchedulerOptions, "mostAtOnce"> = {}) {
  const clock = createFakeClock();
  const time = createTime(clock, mode, 0);
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  const scheduler = new Scheduler(clock, time, { horizonMs: MINUTE, onFailure, ...options });
  const seen: string[] = [];
  const note = (name: string) => (at: number) => void seen.push(`${name} at ${at}`);
  return { clock, time, scheduler, seen, note, failures };
}

/** A promise with its handle. */
export function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

export const turns = async () => {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
};
