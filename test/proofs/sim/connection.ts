/** A process's connection to its store: each call is an await at which the process may end, and the store may fail it. */
import type { Settle } from "../../../src/inbox/store.ts";
import type { InboxStore, Turn, TurnResult } from "../../../src/index.ts";
import type { Process, Surroundings } from "./process.ts";

const SLOW_MS = 400;
const HEARTBEAT_TAKES_MS = 5 * 60_000;

export function connectionOf(
  process: Process,
  store: InboxStore<unknown>,
  surroundings: Surroundings,
): InboxStore<unknown> {
  const calling = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    await process.pass(`asks ${name}`);
    if (surroundings.storeIs("refuses")) throw new Error("the disk is on fire");
    if (surroundings.storeIs("is slow")) await process.sleep(SLOW_MS);
    const result = await call();
    if (surroundings.storeIs("is slow")) await process.sleep(SLOW_MS);
    await process.pass(`hears of ${name}`);
    // An open that happened and failed to say so is no such thing: it would be refused for ever after.
    if (surroundings.storeIs("answers are lost") && name !== "open") throw new Error("the answer was lost");
    return result;
  };
  const step = async (turn: Turn<unknown>): Promise<TurnResult> => {
    const result = await store.step(turn);
    if (turn.accepts.length + turn.settles.length > 0) surroundings.knock();
    const isPutOff = (settle: Settle<unknown>) => settle.kind === "release" && settle.delayMs > 0;
    if (process.sources.length < surroundings.course.sources.length)
      surroundings.putOff(turn.settles.filter(isPutOff).length);
    return result;
  };
  return {
    ...store,
    open: (context) => calling("open", () => store.open(context)),
    step: (turn) => calling("step", () => step(turn)),
    // A process without another source has none to ask for.
    admit: (entries) => (entries.length === 0 ? store.admit(entries) : calling("admit", () => store.admit(entries))),
    extend: (leases, leaseMs) =>
      calling("extend", () => {
        if (surroundings.storeIs("leases are not renewed")) throw new Error("no answer");
        return store.extend(leases, leaseMs);
      }),
    changeNotes: (names, change) => calling("changeNotes", () => store.changeNotes(names, change)),
    nextDue: () => calling("nextDue", () => store.nextDue()),
    // A look every 100 ms at what others wrote would be nearly all that happens.
    onWake: (listener) => process.onKnock(listener),
    act: (act, by) =>
      calling("act", async () => {
        const result = await store.act(act, by);
        surroundings.knock();
        return result;
      }),
    heartbeat: async (beat) => {
      await calling("heartbeat", () => store.heartbeat(beat));
      // One every 10 s would be nearly all that happens; the next is due when this one is through.
      if (!process.isLeaving) await process.sleep(HEARTBEAT_TAKES_MS);
    },
    prune: (policy) => calling("prune", () => store.prune(policy)),
    close: () => calling("close", () => store.close()),
  };
}
