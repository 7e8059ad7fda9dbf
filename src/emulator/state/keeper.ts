/** Keeps the state: within its bounds (`keep`), and in a file when there is one (`state`). */
import { SetupError } from "../../errors.ts";
import type { EmulatorTime } from "../clock.ts";
import type { Settings } from "../options.ts";
import { Changes } from "./changes.ts";
import { isUnderItsId } from "./record-ids.ts";
import { Retention } from "./retention.ts";
import { RECORD_SCHEMAS } from "./schemas.ts";
import { type State, TABLE_NAMES, type Tables } from "./state.ts";
import { openStateFile, type StateFile, type StoredRecord } from "./state-file.ts";
import type { Change, Table } from "./table.ts";

export class Keeper {
  readonly #logger: Settings["logger"];
  readonly #retention: Retention;
  readonly #file: StateFile | null;
  readonly #changes = new Changes();
  #kept: { readonly state: State; readonly time: EmulatorTime } | null = null;
  #isLoading = false;
  #isPlanned = false;
  #isClosed = false;

  constructor({ keep, logger }: Settings, file: StateFile | null) {
    this.#logger = logger;
    this.#retention = new Retention(keep);
    this.#file = file;
  }

  /**
   * Hears of every change of the state. Once started, it commits by the end of the event loop's turn, unless an answer's commit
   * came before: a call has several steps, and one transaction is enough for them.
   */
  readonly onChange = (change: Change): void => {
    this.#retention.onChange(change);
    if (this.#file !== null && !this.#isLoading) this.#changes.add(change);
    if (this.#isPlanned || this.#kept === null) return;
    this.#isPlanned = true;
    setImmediate(() => this.#commitPlanned());
  };

  /** Fills an empty state from the file; false when there is none, or nothing in it. */
  load(state: State): boolean {
    if (this.#file === null) return false;
    this.#isLoading = true;
    // A commit may have written a delivery before its event: what hears of it here must know the event.
    const records = [...this.#file.read()].sort((a, b) => rankOf(a) - rankOf(b));
    for (const { name, id, json } of records) {
      (tableNamed(state, name) as Table<unknown>).put(id, parsed(name, id, json));
    }
    this.#isLoading = false;
    return records.length > 0;
  }

  /** From now on, all that changes is kept. */
  start(state: State, time: EmulatorTime): void {
    this.#kept = { state, time };
    this.commit();
  }

  /** Drops what is over the bounds and writes what changed, all or nothing. What could not be written is tried again next time. */
  commit(): void {
    if (this.#kept === null) return;
    const { state, time } = this.#kept;
    this.#retention.enforce(state);
    if (this.#file === null) return;
    const now = time.now();
    if (state.meta.get("now") !== now) state.meta.put("now", now);
    if (this.#changes.isEmpty) return;
    this.#file.write(this.#changes);
    this.#changes.clear();
  }

  /** Nothing that happens from now on is kept. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Keeps nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#kept = null;
    this.#file?.close();
  }

  #commitPlanned(): void {
    try {
      if (this.#file === null || !this.#changes.isEmpty) this.commit();
    } catch (error) {
      this.#logger.error({ reason: (error as Error).message }, "The state could not be kept in its file.");
    } finally {
      this.#isPlanned = false;
    }
  }
}

/** @throws SetupError when the file cannot be opened or is none of the emulator's */
export async function openKeeper(settings: Settings): Promise<Keeper> {
  return new Keeper(settings, settings.state === undefined ? null : await openStateFile(settings.state));
}

/** A table's place in an export, in whose order an import is taken as well. */
function rankOf({ name }: StoredRecord): number {
  return (TABLE_NAMES as readonly string[]).indexOf(name);
}

function tableNamed(state: State, name: string): Tables[keyof Tables] {
  if (!Object.hasOwn(RECORD_SCHEMAS, name)) throw damaged(name);
  return state[name as keyof Tables];
}

/** What the emulator wrote fits; what somebody edited must as well, or calls would fail later without a reason. */
function parsed(name: string, id: string, json: string): unknown {
  const record = fitting(name, json);
  if (!isUnderItsId(name as keyof Tables, id, record)) throw damaged(name);
  return record;
}

function fitting(name: string, json: string): unknown {
  try {
    const record: unknown = JSON.parse(json);
    RECORD_SCHEMAS[name as keyof Tables].parse(record);
    // As it was written, not as the schema orders its fields: an export before and after is the same text.
    return record;
  } catch (cause) {
    throw damaged(name, cause);
  }
}

function damaged(name: string, cause?: unknown): SetupError {
  const message = `The file of the option "state" is damaged: a record of ${name} does not fit. Remove the file.`;
  return new SetupError("invalid_option", message, { cause, fields: { option: "state" } });
}
