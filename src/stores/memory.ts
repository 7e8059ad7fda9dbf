/** An inbox in memory, for tests and for the first minutes: nothing outlives the process. */

import { SetupError, StoreError } from "../errors.ts";
import { laneIsDue } from "../inbox/lane-port.ts";
import { type Claimed, toLease } from "../inbox/lane-state.ts";
import type { InstanceRecord } from "../inbox/record.ts";
import type { InboxRules, InboxStore, OpenContext, Turn, TurnResult } from "../inbox/store.ts";
import { auditDetail, copyUnfinished, rulesFor } from "../inbox/store-rules.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import { accept, claimDue, countRepeat, extend, quarantine, recoveryDue, settle } from "./memory/batch.ts";
import { act, prune } from "./memory/operator.ts";
import { find, findLanes, findQuarantined, stats } from "./memory/reading.ts";
import {
  createState,
  eventRecord,
  laneByKey,
  laneRecord,
  MemoryLanes,
  type MemoryState,
  type Opened,
} from "./memory/state.ts";
import { exportLanes, importPage } from "./memory/transfer.ts";

const LOCATION = "memory:";

export interface MemoryStoreOptions {
  /** Events it holds at most, of any state, 1 to 10,000,000. Beyond them it refuses (`store_full`). Default 10,000. */
  readonly maxEvents?: number;
  /** Says that losing everything with the process is meant, and silences the warning. Default false. */
  readonly volatile?: boolean;
}

/**
 * Makes an inbox that lives in this process. What it acknowledged is lost when the process ends, so it is no place for
 * events that matter. It never evicts: at capacity it refuses, and the service's retry comes when pruning has made room.
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
  const state = createState(numberOption("maxEvents", options.maxEvents, 10_000, bounds));
  const inLanes = async <T>(operation: (lanes: MemoryLanes) => T): Promise<T> => operation(openLanes(state));
  return {
    capabilities: { durable: false, shared: false, transactional: false },
    location: LOCATION,
    open: async (context) => open(state, context, options.volatile === true),
    step: (turn) => inLanes((lanes) => step(lanes, turn)),
    extend: (leases, leaseMs) => inLanes((lanes) => leases.map((ref) => extend(lanes, ref, leaseMs))),
    nextDue: () => inLanes(nextDue),
    find: (query) => inLanes(() => find(state, query)),
    findLanes: (query) => inLanes(() => findLanes(state, query)),
    findQuarantined: (query) => inLanes(() => findQuarantined(state, query)),
    lane: (ref) =>
      inLanes(() => {
        const lane = typeof ref === "number" ? state.lanes.get(ref) : laneByKey(state, ref);
        return lane === undefined ? null : laneRecord(state, lane);
      }),
    act: (request, by) =>
      inLanes((lanes) => {
        const result = act(lanes, request);
        if (!result.ok) return result;
        const detail = auditDetail(request, result.count);
        // Rows taken from another inbox keep their ids, which may have holes.
        const id = (state.audit.at(-1)?.id ?? 0) + 1;
        state.audit.push({ id, at: lanes.now, by, act: request.kind, detail });
        return result;
      }),
    audit: (limit) => inLanes(() => state.audit.slice(-limit).reverse()),
    stats: () => inLanes(() => stats(state)),
    prune: (policy) => inLanes((lanes) => prune(lanes, policy)),
    export: (after, limit) => inLanes(() => exportLanes(state, after, limit)),
    import: (page) => inLanes(() => importPage(state, page)),
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
  state.rules = rules;
  state.opened = { context, rules };
  // Who held these leases has closed the store, and can settle nothing any more.
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

function step(lanes: MemoryLanes, turn: Turn<never>): TurnResult {
  const { claim } = turn;
  const settled = turn.settles.map((request) => settle(lanes, request));
  for (const repeat of turn.repeats) countRepeat(lanes, repeat);
  const claimed: Claimed = { leased: [], retired: [] };
  if (claim.lane === undefined) claimDue(lanes, claim, claimed);

  const leaseAtAccept = claim.lane === undefined && claim.mode === "ordinary" && !recoveryDue(lanes);
  const indexes = new Map<number, number>();
  const accepted = turn.accepts.map((incoming, index) => {
    const acceptance = accept(lanes, incoming, turn.lateEvents);
    if (acceptance.outcome !== "accepted" && acceptance.outcome !== "late") return acceptance;
    indexes.set(acceptance.event, index);
    const lane = lanes.state.lanes.get(acceptance.lane);
    const free = leaseAtAccept && claimed.leased.length < claim.limit;
    if (free && lane !== undefined && lane.status !== "leased" && laneIsDue(lane, lanes.now))
      lanes.claim(lane, claim, claimed);
    return acceptance;
  });
  const quarantined = turn.quarantines.map((body) => quarantine(lanes, body, turn.quarantineQuota));
  if (claim.lane !== undefined) claimDue(lanes, claim, claimed);
  const { bodies } = lanes.state;
  const leases = claimed.leased.map((leased) => {
    const { id } = leased.event;
    // A pending event always has its body: pruning and erasing finish it first.
    return toLease(leased, bodies.get(id)?.raw ?? new Uint8Array(), indexes.get(id) ?? null);
  });
  const retired = claimed.retired.map((event) => eventRecord(lanes.state, event));
  return { settled, accepted, quarantined, leases, retired, recoveryDue: recoveryDue(lanes) };
}

function nextDue({ state, now }: MemoryLanes): number | null {
  let soonest: number | null = null;
  for (const lane of state.waiting) {
    if (lane.readyAt === null) continue;
    const wait = laneIsDue(lane, now) ? 0 : lane.readyAt - now;
    soonest = soonest === null ? wait : Math.min(soonest, wait);
  }
  return soonest;
}
