/** One write transaction of the core's: lanes are locked and read, everything is decided, and what changed is written. */
import { sameContent } from "../../events/content.ts";
import { acceptNew, countDuplicate, duplicateOf, knownEvent } from "../../inbox/lanes/accepting.ts";
import { type Claimed, claimLane, toLease } from "../../inbox/lanes/claiming.ts";
import { endLease, heldEvent } from "../../inbox/lanes/settling.ts";
import { type LaneEvent, type LaneState, laneIsDue, toEventRecord } from "../../inbox/lanes/state.ts";
import type { NewEvent } from "../../inbox/record.ts";
import type { Acceptance, ClaimRequest, Settle, SettleResult, Turn, TurnResult } from "../../inbox/store.ts";
import { conflictsAmong, readBodies } from "./bodies.ts";
import type { PgClient } from "./driver.ts";
import { claimable, hasExpiredLease } from "./due.ts";
import type { NewBody, NewConflict } from "./flush.ts";
import { type Key, keyOf, keyText } from "./lanes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { quarantineAll } from "./quarantine.ts";
import { countRepeats } from "./repeats.ts";
import type { Session } from "./session.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

/** Settles that were committed ahead of the turn, with their effects. */
export type Answered = ReadonlyMap<number, SettleResult>;

export async function runTurn(
  inbox: OpenInbox,
  session: Session,
  turn: Turn<PgClient>,
  answered: Answered,
): Promise<TurnResult> {
  const work = await openWorkspace(inbox, session);
  const keys = turn.accepts.map(({ lane }) => keyOf(inbox.names, lane));
  await lockAndRead(work, turn, keys);
  const settled = turn.settles.map((request, index) => answered.get(index) ?? settle(work, request));

  const { claim } = turn;
  const claimed: Claimed = { leased: [], retired: [] };
  if (claim.lane === undefined) await claimDue(work, claim, claimed);
  const mayLease = claim.mode === "ordinary" && claim.lane === undefined && !(await isRecoveryDue(work));
  const { accepted, bodies, conflicts, indexes } = await acceptAll(work, turn, {
    keys,
    claim: mayLease ? claim : null,
    claimed,
  });
  const quarantined = await quarantineAll(session, work.sheet, { turn, now: work.moment.now });
  if (claim.lane !== undefined) await claimDue(work, claim, claimed);

  const raws = await bodiesOf(work, claimed, bodies);
  work.adds({ bodies, conflicts });
  await countRepeats(work, turn.repeats);
  await work.flush();
  return {
    settled,
    accepted,
    quarantined,
    leases: claimed.leased.map((leased) => {
      const { id } = leased.event;
      return toLease(leased, raws.get(id) ?? new Uint8Array(), indexes.get(id) ?? null);
    }),
    retired: claimed.retired.map((event) => toEventRecord(event, raws.get(event.id) ?? null)),
    recoveryDue: await isRecoveryDue(work),
  };
}

function lockAndRead(work: Workspace, turn: Turn<PgClient>, keys: readonly Key[]): Promise<void> {
  const ids = [
    ...turn.settles.map(({ lease }) => lease.lane),
    ...(turn.claim.lane === undefined ? [] : [turn.claim.lane]),
  ];
  const wanted = turn.accepts.flatMap((event, index) => {
    const key = keys[index];
    return key === undefined ? [] : [{ key, event }];
  });
  return work.lock(ids, wanted);
}

function settle(work: Workspace, request: Settle<PgClient>): SettleResult {
  const event = heldEvent(work.moment, work.byId.get(request.lease.lane), request.lease);
  if (event === null) return { status: "lost" };
  endLease(work.moment, event, request);
  return { status: "settled" };
}

/** With `recover` one expired lease, else due lanes, oldest first, until there are enough or no more. */
async function claimDue(work: Workspace, request: ClaimRequest, claimed: Claimed): Promise<void> {
  const limit = request.mode === "recover" ? Math.min(1, request.limit) : request.limit;
  while (claimed.leased.length < limit) {
    const due = await dueLanes(work, request, limit - claimed.leased.length);
    if (due.length === 0) return;
    for (const lane of due) {
      if (claimed.leased.length >= limit) return;
      claimLane(work.moment, lane, request, claimed);
    }
  }
}

/** Those that this transaction holds already, and those that it locks now. */
async function dueLanes(work: Workspace, request: ClaimRequest, limit: number): Promise<readonly LaneState[]> {
  const { now } = work.moment;
  if (request.lane === undefined) {
    const rows = await claimable(work.session, {
      now,
      limit,
      recover: request.mode === "recover",
      seen: [...work.byId.keys()],
    });
    await work.add(rows);
  }
  const candidates = request.lane === undefined ? [...work.byId.values()] : [work.byId.get(request.lane)];
  return candidates
    .filter((lane) => lane !== undefined)
    .filter((lane) => (lane.status === "leased") === (request.mode === "recover") && laneIsDue(lane, now))
    .sort((a, b) => (a.readyAt ?? 0) - (b.readyAt ?? 0) || a.id - b.id);
}

interface Accepting {
  readonly keys: readonly Key[];
  /** Null when an accepted event must not be leased at once. */
  readonly claim: ClaimRequest | null;
  readonly claimed: Claimed;
}

async function acceptAll(work: Workspace, turn: Turn<PgClient>, { keys, claim, claimed }: Accepting) {
  const { moment } = work;
  const bodies: NewBody[] = [];
  const conflicts: NewConflict[] = [];
  const indexes = new Map<number, number>();
  const lanes = keys.map((key) => work.byKey.get(keyText(key)));
  const differing = await conflictsAmong(work.session, turn.accepts, (incoming, index) =>
    knownEvent(lanes[index], incoming),
  );
  const ids = await work.inbox.eventIds(work.session, turn.accepts.length);
  const accepted = turn.accepts.map((incoming, index): Acceptance => {
    const lane = lanes[index];
    const id = ids[index];
    if (lane === undefined || id === undefined) throw new RangeError("A lane of this turn was not locked.");
    const first = knownEvent(lane, incoming);
    if (first !== undefined) {
      const conflict = differing.has(index) || differsInTurn(first, incoming, bodies);
      const isFirst = countDuplicate(moment, first, incoming, conflict);
      if (isFirst)
        conflicts.push({
          event: first.id,
          digest: incoming.digest,
          signedAt: incoming.signedAt,
          at: moment.now,
          raw: incoming.raw,
        });
      return duplicateOf(first, conflict);
    }
    const event = acceptNew(moment, lane, incoming, { id, lateEvents: turn.lateEvents });
    bodies.push({ event: id, raw: incoming.raw });
    indexes.set(id, index);
    const free = claim !== null && claimed.leased.length < claim.limit;
    if (free && lane.status !== "leased" && laneIsDue(lane, moment.now)) claimLane(moment, lane, claim, claimed);
    return { outcome: event.late ? "late" : "accepted", event: id, lane: lane.id };
  });
  return { accepted, bodies, conflicts, indexes };
}

/** The first delivery of an event may have come in the same turn. */
function differsInTurn(first: LaneEvent, incoming: NewEvent, bodies: readonly NewBody[]): boolean {
  const body = bodies.find(({ event }) => event === first.id);
  return (
    body !== undefined && Buffer.compare(first.digest, incoming.digest) !== 0 && !sameContent(body.raw, incoming.raw)
  );
}

/** The bodies of what was leased or retired, from the turn itself where it brought them. */
async function bodiesOf(
  work: Workspace,
  claimed: Claimed,
  bodies: readonly NewBody[],
): Promise<ReadonlyMap<number, Uint8Array>> {
  const known = new Map(bodies.map(({ event, raw }) => [event, raw]));
  const wanted = [...claimed.leased.map(({ event }) => event.id), ...claimed.retired.map(({ id }) => id)];
  const missing = wanted.filter((id) => !known.has(id));
  for (const [id, raw] of await readBodies(work.session, missing)) known.set(id, raw);
  return known;
}

/** Whether an expired lease is left: among the lanes in hand as they were decided, or among all others. */
async function isRecoveryDue({ session, byId, moment }: Workspace): Promise<boolean> {
  const isExpired = (lane: LaneState) => lane.status === "leased" && laneIsDue(lane, moment.now);
  if ([...byId.values()].some(isExpired)) return true;
  return hasExpiredLease(session, moment.now, [...byId.keys()]);
}
