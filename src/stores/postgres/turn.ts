/** One write transaction of the core's: lanes are locked and read, everything is decided, and what changed is written. */
import { type Claimed, claimLane, toLease } from "../../inbox/lanes/claiming.ts";
import { endLease, heldEvent } from "../../inbox/lanes/settling.ts";
import { laneIsDue, toEventRecord } from "../../inbox/lanes/state.ts";
import type { Settle, SettleResult, Turn, TurnResult } from "../../inbox/store.ts";
import { type Accepted, acceptAll, lanesOf } from "./accept.ts";
import { readBodies } from "./bodies.ts";
import { claimDue, type FirstDue, lockFirstDue } from "./claim-due.ts";
import type { PgClient } from "./driver.ts";
import type { LaneRow } from "./lanes.ts";
import { NONE_EXPIRED, type Numbers, newNumbers } from "./numbers.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { quarantineAll } from "./quarantine.ts";
import { countRepeats } from "./repeats.ts";
import { both, type Session } from "./session.ts";
import { lockWanted, type WantedLane, Workspace } from "./workspace.ts";

/** Settles that were committed ahead of the turn, with their effects. */
export type Answered = ReadonlyMap<number, SettleResult>;

export async function runTurn(
  inbox: OpenInbox,
  session: Session,
  turn: Turn<PgClient>,
  { answered, slot }: { readonly answered: Answered; readonly slot: number },
): Promise<TurnResult> {
  const names = inbox.names.on(session);
  await names.find(session, turn.accepts);
  const wanted = lanesOf(names, turn.accepts);
  const { claim } = turn;
  const begun = begin(inbox, session, { turn, answered, wanted });
  // It may fail while the beginning is still waited for.
  begun.catch(() => {});
  const work = new Workspace(inbox, session, { now: await inbox.timeOfBeginning(session), slot, names });
  const { locked, numbers, due } = await begun;
  // A lease that runs ends later than now; one that is ended for its holder may be found a second later, and then its like at once.
  if (claim.limit > 0) inbox.lookFrom.expired.goesOnFrom(numbers.expired.length === 0 ? work.moment.now : 0);
  await work.take(wanted, locked, due.rows);
  const settled = turn.settles.map((request, index) => answered.get(index) ?? settle(work, request));

  const claimed: Claimed = { leased: [], retired: [] };
  if (claim.lane === undefined) await claimDue(work, claim, { claimed, areAllLocked: due.areAll });
  work.enter(numbers);
  const isRecoveryDue = () => numbers.expired.some((id) => !work.byId.has(id)) || hasExpiredLease(work);
  const mayLease = claim.mode === "ordinary" && claim.lane === undefined && !isRecoveryDue();
  const accepted = await acceptAll(
    work,
    { events: turn.accepts, lateEvents: turn.lateEvents, ids: numbers.events },
    (lane) => {
      const free = mayLease && claimed.leased.length < claim.limit && lane.status !== "leased";
      if (free && laneIsDue(lane, work.moment.now)) claimLane(work.moment, lane, claim, claimed);
    },
  );
  const quarantined = await quarantineAll(session, work.sheet, { turn, now: work.moment.now });
  if (claim.lane !== undefined) await claimDue(work, claim, { claimed, areAllLocked: true });

  const places = placesOf(accepted);
  const handed = [...claimed.leased.map(({ event }) => event), ...claimed.retired].map(({ id }) => id);
  const stored = await readBodies(
    session,
    handed.filter((id) => !places.has(id)),
  );
  const rawOf = (id: number) => stored.get(id) ?? turn.accepts[places.get(id) ?? -1]?.raw;
  await countRepeats(work, turn.repeats);
  await session.conclude(() => work.flush());
  return {
    settled,
    accepted,
    quarantined,
    leases: claimed.leased.map((leased) => {
      const { id } = leased.event;
      return toLease(leased, rawOf(id) ?? new Uint8Array(), places.get(id) ?? null);
    }),
    retired: claimed.retired.map((event) => toEventRecord(event, rawOf(event.id) ?? null)),
    recoveryDue: isRecoveryDue(),
  };
}

interface Beginning {
  readonly turn: Turn<PgClient>;
  readonly answered: Answered;
  readonly wanted: readonly WantedLane[];
}

interface Begun {
  readonly locked: readonly LaneRow[];
  /** Some may be among the others. */
  readonly due: FirstDue;
  /** For as many lanes as may have to be made. */
  readonly numbers: Numbers;
}

/**
 * Locks the lanes, and then takes numbers, so that those of a lane's events grow as they are accepted, and then locks lanes that are due,
 * for which it never waits; where the connection pipelines, all of it is sent at once. Without the lanes of what is answered: another
 * transaction may hold them still.
 */
async function begin(inbox: OpenInbox, session: Session, { turn, answered, wanted }: Beginning): Promise<Begun> {
  const { settles, claim, accepts } = turn;
  const settled = settles.flatMap(({ lease }, index) => (answered.has(index) ? [] : [lease.lane]));
  const ids = [...settled, ...(claim.lane === undefined ? [] : [claim.lane])];
  const now = inbox.ownTime();
  const held = ids.length + wanted.length + claim.limit;
  const expiredFrom = claim.limit > 0 ? inbox.lookFrom.expired.next() : NONE_EXPIRED;
  const [locked, [numbers, due]] = await both(
    session,
    () => lockWanted(session, ids, wanted),
    () =>
      both(
        session,
        () => newNumbers(session, { lanes: wanted.length, events: accepts.length, now, held, expiredFrom }),
        () => lockFirstDue(inbox, session, claim),
      ),
  );
  return { locked, numbers, due };
}

function settle(work: Workspace, request: Settle<PgClient>): SettleResult {
  const event = heldEvent(work.moment, work.byId.get(request.lease.lane), request.lease);
  if (event === null) return { status: "lost" };
  return endLease(work.moment, event, request);
}

/** Where in the turn each new event came. */
function placesOf(accepted: readonly Accepted[]): ReadonlyMap<number, number> {
  const places = new Map<number, number>();
  for (const [index, { outcome, event }] of accepted.entries()) if (outcome !== "duplicate") places.set(event, index);
  return places;
}

/** Whether an expired lease is left among the lanes in hand, as they were decided. */
function hasExpiredLease({ byId, moment }: Workspace): boolean {
  return [...byId.values()].some((lane) => lane.status === "leased" && laneIsDue(lane, moment.now));
}
