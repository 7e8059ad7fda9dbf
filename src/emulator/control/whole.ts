/** The state as a whole: back to the seed data, or another one in its place. */
import { seedState } from "../seed.ts";
import type { Service } from "../service.ts";
import { TABLE_NAMES } from "../state/state.ts";
import type { Table } from "../state/table.ts";
import type { Whole } from "./control.ts";

export function createWhole(service: Service): Omit<Whole, "isClosed"> {
  const { state, scheduler, settings, time, journal, faults, deliveries } = service;
  /** A receiver may remember ids, so that none may come twice: what is counted goes on, but for the lines of the log. */
  const empty = () => {
    scheduler.clear();
    deliveries.forget();
    const counted = [...state.counters.entries()].filter(([counter]) => counter !== "log");
    for (const name of TABLE_NAMES) state[name].clear();
    return counted;
  };
  return {
    reset() {
      for (const [counter, count] of empty()) state.counters.put(counter, count);
      seedState(state, settings);
      faults.clear();
      for (const rule of settings.faults) faults.add(rule);
      journal.tell({ type: "reset" });
    },
    load(tables) {
      const counted = empty();
      for (const name of TABLE_NAMES) {
        const table = state[name] as Table<unknown>;
        for (const [id, record] of Object.entries(tables[name] ?? {})) table.put(id, record);
      }
      for (const [counter, count] of counted) {
        if (count > (state.counters.get(counter) ?? 0)) state.counters.put(counter, count);
      }
      time.raiseTo(state.meta.get("now") ?? 0);
      journal.tell({ type: "reset" });
      resume(service);
    },
  };
}

/** Takes up what a loaded state left pending. */
export function resume({ messages, deliveries }: Service): void {
  messages.resume();
  deliveries.resume();
}
