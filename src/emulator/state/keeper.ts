/** Keeps the state: within its bounds (`keep`), and in a file when there is one (`state`). */
import type { Settings } from "../options.ts";
import type { State } from "./state.ts";
import type { ChangeListener } from "./table.ts";

export interface Keeper {
  /** Hears of every change of the state. */
  readonly onChange: ChangeListener;
  /** Fills an empty state from the file; false when there is no file, or nothing in it. */
  load(state: State): boolean;
  /** Drops what is over the bounds and writes what changed, all or nothing. `now`: the emulator's time. */
  commit(state: State, now: number): void;
  close(): void;
}

/** @throws SetupError when the file cannot be opened or is none of the emulator's */
export async function openKeeper(_settings: Settings): Promise<Keeper> {
  return { onChange: () => {}, load: () => false, commit: () => {}, close: () => {} };
}
