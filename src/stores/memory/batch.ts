/** One batch on an inbox in memory: accepts events, claims lanes, and ends leases. */
import { SetupError, StoreError } from "../../errors.ts";
import { claimOrder, laneIsDue } from "../../inbox/lane-port.ts";
import {
  type Claimed,
  countDuplicate,
  duplicateOf,
  type LaneEvent,
  type LaneState,
  NO_BODY,
  toLease,
} from "../../inbox/lane-state.ts";
import type { NewEvent, NewQuarantine } from "../../inbox/record.ts";
import type {
  Acceptance,
  ClaimRequest,
  LeaseRef,
  QuarantineAnswer,
  QuarantineQuota,
  Settle,
  SettleResult,
  Turn,
  TurnResult,
} from "../../inbox/store.ts";
import { bodiesGivingWay, isConflict, roomLeft } from "../../inbox/store-rules.ts";
import { addLane, eventRecord, knownEvent, laneByKey, type MemoryLanes } from "./state.ts";

export function stepInMemory(lanes: MemoryLanes, turn: Turn<never>): TurnResult {
  const { claim } = turn;
  const settled = turn.settles.map((request) => settle(lanes, request));
  const claimed: Claimed = { leased: [], retired: [], untaken: [], bytes: 0 };
  if (claim.lane === undefined) claimDue(lanes, claim, claimed);

  const leaseAtAccept = claim.lane === undefined && claim.mode === "ordinary" && !recoveryDue(lanes);
  const indexes = new Map<number, number>();
  const accepted = turn.accepts.map((incoming, index) => {
    const acceptance = acceptInMemory(lanes, incoming);
    if (acceptance.outcome === "duplicate" || acceptance.outcome === "failed") return acceptance;
    indexes.set(acceptance.event, index);
    const lane = lanes.state.lanes.get(acceptance.lane);
    const free = leaseAtAccept && roomLeft(claimed, claim.limit, claim.maxBytes) > 0;
    if (free && lane !== undefined && lane.status !== "leased" && laneIsDue(lane, lanes.now))
      lanes.claim(lane, claim, claimed, sizeOf(lanes));
    return acceptance;
  });
  const quarantined = turn.quarantines.map((body) => quarantine(lanes, body, turn.quarantineQuota));
  if (claim.lane !== undefined) claimDue(lanes, claim, claimed);
  const { bodies } = lanes.state;
  const leases = claimed.leased.map((leased) => {
    const { id } = leased.event;
    // A pending event always has its body: pruning and erasing finish it first.
    return toLease(leased, bodies.get(id) ?? NO_BODY, indexes.get(id) ?? null);
  });
  const retired = claimed.retired.map((event) => eventRecord(lanes.state, event));
  const { untaken } = claimed;
  return { settled, accepted, quarantined, leases, retired, untaken, recoveryDue: recoveryDue(lanes) };
}

/** Milliseconds until the next lane is due. Null when none waits. */
export function nextDueInMemory({ state, now }: MemoryLanes): number | null {
  let soonest: number | null = null;
  for (const lane of state.waiting) {
    if (lane.readyAt === null) continue;
    const wait = laneIsDue(lane, now) ? 0 : lane.readyAt - now;
    soonest = soonest === null ? wait : Math.min(soonest, wait);
  }
  return soonest;
}

/** Stores an event unless it is known, and arms its lane. */
export function acceptInMemory(lanes: MemoryLanes, incoming: NewEvent): Acceptance {
  const { state } = lanes;
  const first = knownEvent(state, incoming);
  if (first !== undefined) return acceptDuplicate(lanes, first, incoming);
  if (state.events.size >= state.maxEvents) {
    // Recorded even for a refused event: pruning goes by the newest timestamp, and must continue so that there is room.
    if (!incoming.untimed) lanes.tally.signed(incoming.signedAt);
    return { outcome: "failed", error: memoryFull(state.maxEvents) };
  }
  const lane = laneByKey(state, incoming.lane) ?? addLane(state, incoming);
  return lanes.accept(lane, incoming, ++state.lastEventId);
}

function acceptDuplicate(lanes: MemoryLanes, first: LaneEvent, incoming: NewEvent): Acceptance {
  const bodies = lanes.state.bodies.get(first.id);
  const conflict = isConflict(incoming, first.digest, bodies);
  const isFirst = countDuplicate(lanes.tally, first, incoming, conflict);
  if (isFirst && bodies !== undefined) {
    const [digest, raw] = [new Uint8Array(incoming.digest), new Uint8Array(incoming.raw)];
    bodies.conflict = { digest, raw, signedAt: incoming.signedAt, at: lanes.now };
  }
  return duplicateOf(first, conflict);
}

function quarantine(lanes: MemoryLanes, incoming: NewQuarantine, quota: QuarantineQuota): QuarantineAnswer {
  const { state, tally } = lanes;
  const { reason, slot, signer, source, tenant, kinds, signedAt, untimed = false, trace, head = null } = incoming;
  if (!untimed) tally.signed(signedAt);
  const digestText = hexText(incoming.digest);
  if (state.quarantineDigests.has(digestText)) return "duplicate";
  const held = [...state.quarantine.values()].filter((row) => row.state === "held" && row.signer === signer);
  const sizes = held.map((row) => ({ row, reason: row.reason, bytes: row.raw?.byteLength ?? 0 }));
  const dropped = bodiesGivingWay(sizes, incoming.raw.byteLength, quota);
  if (dropped === null) return "full";
  for (const { row } of dropped) Object.assign(row, { state: "discarded", raw: null, head: null });
  const id = ++state.lastQuarantineId;
  const [digest, raw] = [new Uint8Array(incoming.digest), new Uint8Array(incoming.raw)];
  state.quarantine.set(id, {
    ...{ id, reason, slot, signer, source, tenant, kinds: [...kinds], state: "held", replayedAs: null },
    ...{ signedAt, untimed, acceptedAt: lanes.now, trace, digest, raw, head },
  });
  state.quarantineDigests.add(digestText);
  tally.count("quarantined");
  return dropped.length === 0 ? "held" : { outcome: "made_room", dropped: dropped.length };
}

export function hexText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

export function memoryFull(maxEvents: number): StoreError {
  return new StoreError(
    "store_full",
    `The memory store holds its ${maxEvents} events and forgets none early. Raise maxEvents, or use sqliteStore().`,
    { fields: { maxEvents } },
  );
}

/** Claims what `request` asks for. With `recover` that is one expired lease, otherwise due lanes, oldest first. */
function claimDue(lanes: MemoryLanes, request: ClaimRequest, claimed: Claimed): void {
  const recovering = request.mode === "recover";
  const limit = recovering ? Math.min(1, request.limit) : request.limit;
  while (roomLeft(claimed, limit, request.maxBytes) > 0) {
    const due = claimOrder(dueLanes(lanes, recovering, request.lane), request, lanes.now);
    if (due.length === 0) return;
    for (const lane of due) {
      if (roomLeft(claimed, limit, request.maxBytes) <= 0) return;
      lanes.claim(lane, request, claimed, sizeOf(lanes));
    }
  }
}

const sizeOf =
  ({ state }: MemoryLanes) =>
  ({ id }: LaneEvent): number =>
    state.bodies.get(id)?.raw.byteLength ?? 0;

/** True while an expired lease is due. */
function recoveryDue({ state, now }: MemoryLanes): boolean {
  for (const lane of state.waiting) if (lane.status === "leased" && laneIsDue(lane, now)) return true;
  return false;
}

function dueLanes({ state, now }: MemoryLanes, leased: boolean, only: number | undefined): LaneState[] {
  const due: LaneState[] = [];
  for (const lane of state.waiting) {
    if ((lane.status === "leased") !== leased || !laneIsDue(lane, now)) continue;
    if (only === undefined || lane.id === only) due.push(lane);
  }
  return due;
}

function settle({ state, rules }: MemoryLanes, request: Settle<never>): SettleResult {
  const lane = state.lanes.get(request.lease.lane);
  const event = rules.heldEvent(lane, request.lease);
  if (lane === undefined || event === null) return { status: "lost" };
  if (request.kind === "complete" && request.effects.length > 0) {
    return { status: "effect_failed", error: effectsUnsupported() };
  }
  return rules.endLease(lane, event, request);
}

export function extendInMemory({ state, rules, now }: MemoryLanes, ref: LeaseRef, leaseMs: number): boolean {
  const lane = state.lanes.get(ref.lane);
  if (lane === undefined || rules.heldEvent(lane, ref) === null) return false;
  lane.readyAt = now + leaseMs;
  return true;
}

function effectsUnsupported(): SetupError {
  return new SetupError(
    "effects_unsupported",
    "The memory store has no transaction that ctx.commit could write in. Use sqliteStore() of oncehook/sqlite.",
  );
}
