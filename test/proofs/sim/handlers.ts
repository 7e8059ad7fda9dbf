/** What a world's handlers do: write their row of the history, and go wrong in every way on the way there. */
import { type HandlerContext, PermanentError, RetryAfter } from "../../../src/index.ts";
import type { Course } from "./course.ts";
import { Dice } from "./dice.ts";
import type { Process } from "./process.ts";

const FAILURES = [
  "throws",
  "rejects",
  "asks for more time",
  "asks for no time",
  "gives up",
  "never ends",
  "overstays",
  "fails in the end",
  "effect throws",
] as const;
const SUCCESSES = ["returns", "returns", "resolves", "takes its time", "takes long"] as const;
/** For worlds in which they are slow or fail at once. */
const SLOW = {
  failures: ["fails in the end", "fails in the end", "asks for no time", "throws"],
  successes: ["takes long", "takes long", "takes its time", "returns"],
} as const;
export type Manner = (typeof FAILURES)[number] | (typeof SUCCESSES)[number];

/** What a handler asks for by `RetryAfter`. */
export const ASKED_MS: Partial<Record<Manner, number>> = {
  "asks for more time": 7_000,
  ...{ "asks for no time": 3, "fails in the end": 3 },
};

/** The same attempt at an event goes the same way, whichever process makes it. */
export function mannerOf(course: Course, ctx: HandlerContext<unknown>, isHealed: boolean): Manner {
  const { seed, handlersFail, handlersAre, poisoned } = course;
  if (poisoned !== null && markerIn(ctx.rawBody) === poisoned) return "throws";
  if (isHealed) return "returns";
  const dice = new Dice(seed, `${ctx.identity} ${ctx.attempt} ${ctx.replay}`);
  const isMixed = handlersAre === "mixed";
  if (dice.chance(handlersFail)) return dice.pick<Manner>(isMixed ? FAILURES : SLOW.failures);
  return dice.pick<Manner>(isMixed ? SUCCESSES : SLOW.successes);
}

/** Some events have handlers that write nothing. Their completion is another one for a store. */
export function writes({ seed, handlersWrite }: Course, identity: string): boolean {
  return new Dice(seed, `effect of ${identity}`).chance(handlersWrite);
}

/** Less than the time limit. */
export function takesMs({ seed }: Course, { identity, attempt }: HandlerContext<unknown>, timeoutMs: number): number {
  return new Dice(seed, `duration of ${identity} ${attempt}`).between(0.1, 0.9) * timeoutMs;
}

export interface Handling {
  readonly process: Process;
  readonly ctx: HandlerContext<unknown>;
  readonly manner: Manner;
  readonly timeoutMs: number;
  /** Of one that takes long. */
  readonly takesMs: number;
  /** Registers the effect. */
  readonly write: () => void;
}

/** Without a promise where the manner wants none: such a handler ends before anybody else has a turn. */
export function handleBy(handling: Handling): unknown {
  const { ctx, manner, write } = handling;
  if (manner === "throws") throw new Error("It throws.");
  if (manner === "gives up") throw new PermanentError("It gives up.");
  if (manner === "asks for more time" || manner === "asks for no time") throw new RetryAfter(ASKED_MS[manner] ?? 0);
  if (manner === "never ends") return new Promise(() => {});
  if (manner === "effect throws") {
    write();
    return ctx.commit((_tx) => {
      throw new Error("Its effect throws.");
    });
  }
  if (manner === "returns") return write();
  return inTime(handling);
}

async function inTime({ process, manner, timeoutMs, takesMs, write }: Handling): Promise<void> {
  await process.pass("is in a handler");
  if (manner === "rejects") {
    write();
    await process.pass("is in a handler");
    throw new Error("It rejects.");
  }
  if (manner === "takes its time") await process.sleep(2_000);
  // It registers its effect first, as one that then calls another service.
  if (manner === "takes long") {
    write();
    return process.sleep(takesMs);
  }
  if (manner === "fails in the end") {
    await process.sleep(takesMs);
    throw new RetryAfter(ASKED_MS[manner] ?? 0);
  }
  // It does not look at its signal, and comes back within the grace or after it.
  if (manner === "overstays") await process.sleep(timeoutMs + (process.name.length % 2 === 0 ? 5_000 : 45_000));
  write();
  await process.pass("is in a handler");
}

/** What a body hides: the reference that its sender gave it. */
export function markerIn(body: Uint8Array | null): string {
  const found = /"externalReference":"([^"]*)"/.exec(body === null ? "" : Buffer.from(body).toString());
  return found?.[1] ?? "no-event";
}
