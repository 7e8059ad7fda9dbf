/** One write transaction of the core's: lanes are locked and read, everything is decided, and what changed is written. */
import { sameContent } from "../../events/parse.ts";
import {
  acceptanceOf,
  acceptNew,
  type Claimed,
  claimLane,
  countDuplicate,
  duplicateOf,
  endLease,
  heldEvent,
  knownEvent,
  type LateEvents,
  toLease,
} from "../../inbox/lane.ts";
import { type LaneEvent, type LaneState, laneIsDue, toEventRecord } from "../../inbox/lane-state.ts";
import type { NewEvent, NewQuarantine } from "../../inbox/record.ts";
import type {
  Acceptance,
  ClaimRequest,
  QuarantineAnswer,
  Repeat,
  Settle,
  SettleResult,
  Turn,
  TurnResult,
} from "../../inbox/store.ts";
import { roomLeft } from "../../inbox/store-rules.ts";
import type { TallySheet } from "./instances.ts";
import {
  claimable,
  conflictsAmong,
  type DueRequest,
  keyOf,
  keyText,
  type LaneRow,
  NONE_EXPIRED,
  type Numbers,
  newNumbers,
  readBodies,
} from "./lanes.ts";
import type { Names } from "./names.ts";
import type { OpenInbox } from "./open.ts";
import { both, type PgClient, type Session } from "./session.ts";
import { lockWanted, type WantedLane, Workspace } from "./workspace.ts";

// One write transaction of the core's: lanes are locked and read, everything is decided, and what changed is written.

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
  const work = new Workspace(inbox, session, names, await inbox.timeOfBeginning(session), slot);
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

// Takes events into their lanes, which this transaction holds, or counts them as duplicates.

type Accepted = Exclude<Acceptance, { outcome: "failed" }>;

interface Incoming {
  readonly events: readonly NewEvent[];
  readonly lateEvents: LateEvents;
  /** A number for each, from the workspace's `enter()`. */
  readonly ids: readonly number[];
}

/** The lanes of `events`, to be locked before these are accepted. */
export function lanesOf(names: Names, events: readonly NewEvent[]): WantedLane[] {
  return events.map(({ lane }) => ({ key: keyOf(names, lane), lane }));
}

/** @param added - called for the lane of each event that is new, before the next is looked at */
export async function acceptAll(
  work: Workspace,
  { events, lateEvents, ids }: Incoming,
  added: (lane: LaneState) => void = () => {},
): Promise<readonly Accepted[]> {
  const lanes = events.map((event) => work.byKey.get(keyText(keyOf(work.names, event.lane))));
  const differing = await conflictsAmong(work.session, events, (event, index) => knownEvent(lanes[index], event));
  const bodies = new Map<number, Uint8Array>();
  return events.map((incoming, index) => {
    const [lane, id] = [lanes[index], ids[index]];
    if (lane === undefined || id === undefined) throw new RangeError("The lane of an event was not locked.");
    const first = knownEvent(lane, incoming);
    if (first !== undefined) {
      const conflict = differing.has(index) || differs(incoming, first, bodies.get(first.id));
      countAgain(work, first, { incoming, conflict });
      return duplicateOf(first, conflict);
    }
    const newcomer = acceptNew(work.moment, lane, incoming, { id, lateEvents });
    bodies.set(id, incoming.raw);
    work.addBody(id, incoming.raw);
    added(lane);
    return acceptanceOf(newcomer);
  });
}

/** The first delivery of an event may have come with this one: then its body is not stored yet. */
function differs(incoming: NewEvent, first: LaneEvent, body: Uint8Array | undefined): boolean {
  return body !== undefined && Buffer.compare(first.digest, incoming.digest) !== 0 && !sameContent(body, incoming.raw);
}

function countAgain(
  work: Workspace,
  first: LaneEvent,
  { incoming, conflict }: { readonly incoming: NewEvent; readonly conflict: boolean },
): void {
  const isFirst = countDuplicate(work.moment, first, incoming, conflict);
  if (isFirst) work.addConflict(first.id, incoming);
}

// Claims lanes whose turn has come. The first are locked as a turn begins, others once these were not enough.

/** Lanes that were due as the turn began, locked, the oldest first. */
interface FirstDue {
  readonly rows: readonly LaneRow[];
  /** Whether there are no others that can be locked now. */
  readonly areAll: boolean;
}

const NONE: FirstDue = { rows: [], areAll: true };

/** As many as are to be claimed, if there are as many; none where one lane alone is to be claimed. */
async function lockFirstDue(inbox: OpenInbox, session: Session, request: ClaimRequest): Promise<FirstDue> {
  const limit = mostToClaim(request);
  if (limit === 0 || request.lane !== undefined) return NONE;
  const asked = { now: inbox.ownTime(), limit, seen: [] };
  if (request.mode === "recover") {
    const rows = await lockDue(session, request, { ...asked, from: 0 });
    return { rows, areAll: rows.length < limit };
  }
  const { due } = inbox.lookFrom;
  const from = due.next();
  const rows = await lockDue(session, request, { ...asked, from });
  const areEnough = rows.length >= limit;
  due.goesOnFrom(areEnough ? (rows[0]?.ready_at ?? 0) : 0);
  return { rows, areAll: !areEnough && from === 0 };
}

/** With `recover` one expired lease, else due lanes, oldest first, until there are enough or no more. */
async function claimDue(
  work: Workspace,
  request: ClaimRequest,
  { claimed, areAllLocked }: { readonly claimed: Claimed; readonly areAllLocked: boolean },
): Promise<void> {
  const most = mostToClaim(request);
  for (let areAll = areAllLocked; roomLeft(claimed, most) > 0; ) {
    const due = dueLanes(work, request);
    for (const lane of due.slice(0, roomLeft(claimed, most))) claimLane(work.moment, lane, request, claimed);
    const limit = roomLeft(claimed, most);
    if (limit > 0 && !areAll) {
      const seen = [...work.byId.keys()];
      const rows = await lockDue(work.session, request, { now: work.moment.now, limit, seen, from: 0 });
      areAll = rows.length < limit;
      await work.add(rows);
    } else if (due.length === 0) return;
  }
}

const mostToClaim = ({ mode, limit }: ClaimRequest): number => (mode === "recover" ? Math.min(1, limit) : limit);

function lockDue(
  session: Session,
  { mode }: ClaimRequest,
  asked: Omit<DueRequest, "recover">,
): Promise<readonly LaneRow[]> {
  return claimable(session, { ...asked, recover: mode === "recover" });
}

/** Of those that this transaction holds, or the one that is named. */
function dueLanes({ byId, moment }: Workspace, request: ClaimRequest): readonly LaneState[] {
  const candidates = request.lane === undefined ? [...byId.values()] : [byId.get(request.lane)];
  return candidates
    .filter((lane) => lane !== undefined)
    .filter((lane) => (lane.status === "leased") === (request.mode === "recover") && laneIsDue(lane, moment.now))
    .sort((a, b) => (a.readyAt ?? 0) - (b.readyAt ?? 0) || a.id - b.id);
}

// Keeps correctly signed bodies that are no events, within the quota of their signer.

/** Counted in the statement that inserts, so that neighbours of one turn see each other; an advisory lock keeps others out. */
const LOCK_SIGNER = "select pg_advisory_xact_lock(hashtext('oncehook quarantine' || $1::text))";
const KEEP_BODY = `with held as (select count(*) as rows, coalesce(sum(bytes), 0) as bytes from (
    select bytes from {}.quarantine where state = 0 and signer = $12::text
    union all select bytes from {}.quarantine where state = 0 and signer is null and slot = $3::text and scope = $4::text) each),
  known as (select 1 from {}.quarantine where digest = $1::bytea),
  room as (select 1 from held where rows < $10::bigint and bytes + $7::int <= $11::bigint),
  kept as (
    insert into {}.quarantine (digest, reason, slot, scope, signed, accepted, bytes, trace, raw, signer)
    select $1::bytea, $2::text, $3::text, $4::text, $5::bigint, $6::bigint, $7::int, $8::text, $9::bytea, $12::text
    from room
    on conflict (digest) do nothing returning 1)
  select exists (select 1 from known) as known, exists (select 1 from room) as fits, exists (select 1 from kept) as kept`;

async function quarantineAll(
  session: Session,
  sheet: TallySheet,
  { turn, now }: { readonly turn: Pick<Turn<never>, "quarantines" | "quarantineQuota">; readonly now: number },
): Promise<QuarantineAnswer[]> {
  // Sorted, so that two turns never wait for each other.
  for (const signer of [...new Set(turn.quarantines.map((body) => body.signer))].sort()) {
    await session.rows("quarantine_lock", LOCK_SIGNER, [signer]);
  }
  const answers: QuarantineAnswer[] = [];
  for (const body of turn.quarantines) {
    answers.push(await keepBody(session, sheet, { body, quota: turn.quarantineQuota, now }));
  }
  return answers;
}

interface Keeping {
  readonly body: NewQuarantine;
  readonly quota: Turn<never>["quarantineQuota"];
  readonly now: number;
}

async function keepBody(session: Session, sheet: TallySheet, { body, quota, now }: Keeping): Promise<QuarantineAnswer> {
  const { digest, reason, slot, signer, scope, signedAt, trace, raw } = body;
  sheet.signed(signedAt);
  const values = [Buffer.from(digest), reason, slot, scope, signedAt, now, raw.byteLength, trace, Buffer.from(raw)];
  const [row] = await session.rows<{ known: boolean; fits: boolean; kept: boolean }>("quarantine", KEEP_BODY, [
    ...values,
    quota.maxRows,
    quota.maxBytes,
    signer,
  ]);
  if (row?.known === true) return "duplicate";
  // One that had room and was not kept came through another signer meanwhile, where this statement did not see it.
  if (row?.kept !== true) return row?.fits === true ? "duplicate" : "full";
  sheet.count("quarantined");
  sheet.gauge("held", 1);
  sheet.gauge("held_bytes", raw.byteLength);
  return "held";
}

// Counts duplicates that the core answered from its cache.

/**
 * No lane is locked for it: the count is the only thing of a settled event that changes. But rows are locked in the order of their
 * ids, with those that the turn itself writes, or two turns could wait for each other.
 */
const LOCK_EVENTS = `select id from {}.event where id = any(array(
    select unnest($1::bigint[]) union select id from {}.event where lane = any($2::bigint[])
  )) order by id for update`;
const COUNT_REPEATS = `update {}.event e set duplicates = duplicates + new.count
  from unnest($1::bigint[], $2::int[]) as new (id, count) where e.id = new.id returning e.id, e.signed`;

/** To be called right before what was decided is written. */
async function countRepeats(work: Workspace, repeats: readonly Repeat[]): Promise<void> {
  if (repeats.length === 0) return;
  const { session, sheet, byId } = work;
  // Who makes the same lane may wait for these rows: as everywhere, lanes come before events.
  await work.writeNewLanes();
  const ids = repeats.map(({ event }) => event);
  await session.rows("lock_rows", LOCK_EVENTS, [ids, [...byId.keys()]]);
  const values = [ids, repeats.map(({ count }) => count)];
  const rows = await session.rows<{ id: number; signed: number }>("repeats", COUNT_REPEATS, values);
  const signed = new Map(rows.map((row) => [row.id, row.signed]));
  for (const { event, count, signedAt } of repeats) {
    const first = signed.get(event);
    if (first === undefined) continue;
    sheet.count("duplicates", count);
    sheet.signed(signedAt);
    if (signedAt !== first) sheet.resigned();
  }
}
