/** The state as a whole: back to the seed data, or another one in its place. */
import { seedState } from "../seed.ts";
import type { Service } from "../service.ts";
import { TABLE_NAMES } from "../state/state.ts";
import type { Table } from "../state/table.ts";
import type { Whole } from "./control.ts";

export function createWhole(service: Service): Whole {
  const { state, scheduler, settings, time, journal, faults } = service;
  const empty = () => {
    scheduler.clear();
    for (const name of TABLE_NAMES) state[name].clear();
  };
  return {
    reset() {
      empty();
      seedState(state, settings);
      faults.clear();
      for (const rule of settings.faults) faults.add(rule);
      journal.tell({ type: "reset" });
    },
    load(tables) {
      empty();
      for (const name of TABLE_NAMES) {
        const table = state[name] as Table<unknown>;
        for (const [id, record] of Object.entries(tables[name] ?? {})) table.put(id, record);
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
