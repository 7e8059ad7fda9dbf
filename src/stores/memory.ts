/** An inbox in memory, for tests and first steps: it is lost when the process ends. */
import { SetupError, StoreError } from "../errors.ts";
import type { InstanceRecord } from "../inbox/record.ts";
import type { InboxRules, InboxStore, OpenContext } from "../inbox/store.ts";
import {
  auditDetail,
  checkMoved,
  checkPreset,
  copyUnfinished,
  entryOf,
  entryText,
  rulesFor,
} from "../inbox/store-rules.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import { extendInMemory, nextDueInMemory, stepInMemory } from "./memory/batch.ts";
import { actInMemory, pruneMemory } from "./memory/operator.ts";
import {
  bodiesInMemory,
  exportFromMemory,
  findInMemory,
  findLanesInMemory,
  findQuarantinedInMemory,
  importToMemory,
  statsOfMemory,
} from "./memory/reading.ts";
import {
  createMemoryState,
  laneByRef,
  laneRecord,
  MemoryLanes,
  type MemoryState,
  type Opened,
} from "./memory/state.ts";

const LOCATION = "memory:";

export interface MemoryStoreOptions {
  /** The most events it holds, of any state, 1 to 10,000,000. Further ones are refused (`store_full`). Default 10,000. */
  readonly maxEvents?: number;
  /** Confirms that everything may be lost with the process, and silences the warning. Default false. */
  readonly volatile?: boolean;
}

/**
 * Makes an inbox in this process. It loses acknowledged events when the process ends, so do not use it for events that matter. It never
 * evicts: when it is full it refuses events, and the service retries until pruning has made room.
 *
 * @throws SetupError `invalid_option`
 *
 * @example
 * const store = memoryStore({ volatile: true });
 * console.log(store.capabilities.durable); // false
 */
export function memoryStore(options: MemoryStoreOptions = {}): InboxStore<never> {
  refuseUnknownOptions("memoryStore()", options, ["maxEvents", "volatile"]);
  const bounds = { min: 1, max: 10_000_000, unit: "events" };
  const state = createMemoryState(numberOption("maxEvents", options.maxEvents, 10_000, bounds));
  const inLanes = async <T>(operation: (lanes: MemoryLanes) => T): Promise<T> => operation(openLanes(state));
  return {
    capabilities: { durable: false, shared: false, transactional: false },
    location: LOCATION,
    open: async (context) => open(state, context, options.volatile === true),
    step: (turn) => inLanes((lanes) => stepInMemory(lanes, turn)),
    extend: (leases, leaseMs) => inLanes((lanes) => leases.map((ref) => extendInMemory(lanes, ref, leaseMs))),
    nextDue: () => inLanes(nextDueInMemory),
    find: (query) => inLanes(() => findInMemory(state, query)),
    findLanes: (query) => inLanes(() => findLanesInMemory(state, query)),
    findQuarantined: (query) => inLanes(() => findQuarantinedInMemory(state, query)),
    lane: (ref) =>
      inLanes(() => {
        const lane = laneByRef(state, ref);
        return lane === undefined ? null : laneRecord(lane);
      }),
    bodies: (events, maxBytes) => inLanes(() => bodiesInMemory(state, events, maxBytes)),
    quarantined: (id) =>
      inLanes(() => {
        const row = state.quarantine.get(id);
        return row === undefined ? null : { ...row };
      }),
    act: (request, by) =>
      inLanes((lanes) => {
        const result = actInMemory(lanes, request);
        if (!result.ok) return result;
        const detail = auditDetail(request, result.count);
        // Rows taken from another inbox keep their ids, which may have holes.
        const id = (state.audit.at(-1)?.id ?? 0) + 1;
        state.audit.push({ id, at: lanes.now, by, act: request.kind, detail });
        return result;
      }),
    audit: (limit) => inLanes(() => state.audit.slice(-limit).reverse()),
    stats: () => inLanes(() => statsOfMemory(state)),
    prune: (policy) =>
      inLanes((lanes) => {
        for (const [name, { until }] of state.notes) if (until < lanes.now) state.notes.delete(name);
        return pruneMemory(lanes, policy);
      }),
    export: (after, limit) => inLanes(() => exportFromMemory(state, after, limit)),
    import: (page) => inLanes(() => importToMemory(state, page)),
    admit: (entries) =>
      inLanes(() => {
        for (const entry of entries) checkPreset(state.entries.get(entry.name), entry);
        for (const entry of entries) state.entries.set(entry.name, entryText(entry));
        state.sequences.learn(entries);
        return [...state.entries].sort().map(([name, text]) => entryOf(name, text));
      }),
    changeNotes: (names, change) =>
      inLanes(({ now }) => {
        const known = names.flatMap((name) => {
          const note = state.notes.get(name);
          return note === undefined ? [] : [[name, note.value] as const];
        });
        const written = change(new Map(known), now);
        for (const [name, { value, keepMs }] of written) state.notes.set(name, { value, until: now + keepMs });
      }),
    markMoved: (to) =>
      inLanes(() => {
        state.movedTo = to;
        return [];
      }),
    heartbeat: (beat) =>
      inLanes(({ now }) => {
        const { id, host, pid } = openedOf(state).context.instance;
        const record: InstanceRecord = { ...beat, id, host, pid, seenAt: now };
        state.instances.set(id, record);
      }),
    close: async () => {
      if (state.opened !== null) state.instances.delete(state.opened.context.instance.id);
      state.opened = null;
    },
  };
}

function open(state: MemoryState, context: OpenContext, volatile: boolean): InboxRules {
  if (state.opened !== null)
    throw new SetupError("already_started", "This memory store is open already: give each receiver its own.");
  const rules = rulesFor(context.rules, state.rules, LOCATION);
  if (state.copiedFrom !== null && !state.copyFinished && context.copying !== true) throw copyUnfinished(LOCATION);
  checkMoved(state.movedTo, LOCATION, context.movedTo);
  state.rules = rules;
  state.opened = { context, rules };
  // The holder of these leases has closed the store, and can no longer complete them.
  for (const lane of state.waiting) if (lane.status === "leased") lane.readyAt = context.clock.now();
  const advice = "Events are kept in memory and lost with the process. Use sqliteStore(), or say volatile: true.";
  if (!volatile) context.logger.warn({ location: LOCATION }, advice);
  return rules;
}

function openedOf({ opened }: MemoryState): Opened {
  if (opened === null) throw new StoreError("closed", "The memory store is not open.");
  return opened;
}

function openLanes(state: MemoryState): MemoryLanes {
  return new MemoryLanes(state, openedOf(state));
}
