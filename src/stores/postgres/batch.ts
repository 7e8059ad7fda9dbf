/** Runs a batch (`Turn`) as one transaction: locks and reads lanes, decides everything, and writes what changed. */

import { claimOrder, laneIsDue } from "../../inbox/lane-port.ts";
import {
  type Body,
  type Claimed,
  countDuplicate,
  duplicateOf,
  type LaneEvent,
  type LaneState,
  NO_BODY,
  toEventRecord,
  toLease,
} from "../../inbox/lane-state.ts";
import type { EventBody, NewEvent, NewQuarantine } from "../../inbox/record.ts";
import type {
  Acceptance,
  ClaimRequest,
  QuarantineAnswer,
  QuarantineQuota,
  Settle,
  SettleResult,
  Turn,
  TurnResult,
} from "../../inbox/store.ts";
import { bodiesGivingWay, isConflict, NO_BOUND, roomLeft } from "../../inbox/store-rules.ts";
import { HELD, kindsText } from "../database.ts";
import { tenantBytes } from "./encoding.ts";
import {
  conflictsAmong,
  idsIn,
  lockDue,
  lockFresh,
  NONE_EXPIRED,
  type Numbers,
  newNumbers,
  numberAt,
  type PgLaneRow,
  readBodies,
} from "./lanes.ts";
import type { PgInbox } from "./open.ts";
import { both, type PgClient, type PgSession } from "./session.ts";
import { lockWanted, Workspace } from "./workspace.ts";

/** The results of settles that were committed before the batch, with their effects. By their index in the batch. */
export type Answered = ReadonlyMap<number, SettleResult>;

/** @param slot - the row of the instance's counters */
export async function runBatch(
  inbox: PgInbox,
  session: PgSession,
  turn: Turn<PgClient>,
  answered: Answered,
  slot: number,
): Promise<TurnResult> {
  const { claim } = turn;
  const begun = begin(inbox, session, turn, answered);
  // It may fail before it is awaited.
  begun.catch(() => {});
  const work = new Workspace(inbox, session, await inbox.timeOfBeginning(session), slot);
  const { locked, numbers, due } = await begun;
  // A running lease ends later than now. One that was ended early, because its holder is gone, is found within a second by a look at the whole index.
  if (claim.limit > 0) inbox.cursors.expired.moveTo(numbers.expired.length === 0 ? work.loaded.now : 0);
  await work.take(turn.accepts, locked, due.rows);
  const settled = turn.settles.map((request, index) => answered.get(index) ?? settleRows(work, request));

  const claimed: PgClaimed = { leased: [], retired: [], untaken: [], bytes: 0, bodies: new Map() };
  if (claim.lane === undefined) await claimDue(work, claim, claimed, due.areAll);
  work.enter(numbers);
  const isRecoveryDue = () => numbers.expired.some((id) => !work.byId.has(id)) || hasExpiredLease(work);
  const mayLease = claim.mode === "ordinary" && claim.lane === undefined && !isRecoveryDue();
  const accepted = await acceptAll(work, turn.accepts, numbers.events, (lane, { raw }) => {
    const free = mayLease && roomLeft(claimed, claim.limit, claim.maxBytes) > 0 && lane.status !== "leased";
    // Nearly always the new event itself: the size of another one is not known here.
    if (free && laneIsDue(lane, work.loaded.now)) work.loaded.claim(lane, claim, claimed, () => raw.byteLength);
  });
  const quarantined = await quarantineAll(work, turn);
  if (claim.lane !== undefined) await claimDue(work, claim, claimed, true);

  const indexes = indexesOf(accepted);
  const claimedEvents = [...claimed.leased.map(({ event }) => event), ...claimed.retired];
  const unread = idsIn(claimedEvents).filter((id) => !indexes.has(id) && !claimed.bodies.has(id));
  const others = await readBodies(session, unread);
  const bodyOf = (id: number): Body =>
    claimed.bodies.get(id) ?? others.get(id) ?? bodyOfNew(turn.accepts[indexes.get(id) ?? -1]);
  await session.conclude(() => work.flush());
  return {
    settled,
    accepted,
    quarantined,
    leases: claimed.leased.map((leased) => {
      const { id } = leased.event;
      return toLease(leased, bodyOf(id), indexes.get(id) ?? null);
    }),
    retired: claimed.retired.map((event) => toEventRecord(event, bodyOf(event.id))),
    untaken: claimed.untaken,
    recoveryDue: isRecoveryDue(),
  };
}

function bodyOfNew(event: NewEvent | undefined): Body {
  return event === undefined ? NO_BODY : { raw: event.raw, head: event.head ?? null };
}

interface Begun {
  readonly locked: readonly PgLaneRow[];
  /** May include some of `locked`. */
  readonly due: FirstDue;
  /** Enough for all lanes that may have to be created. */
  readonly numbers: Numbers;
}

/**
 * Locks the lanes of what comes, then takes numbers, so that the numbers of a lane's events grow in the order of acceptance, then locks due lanes
 * without waiting for any. If the connection pipelines, all of it is sent at once. Leaves out the lanes of settles that are already
 * answered, because another transaction may still hold them.
 */
async function begin(
  inbox: PgInbox,
  session: PgSession,
  { settles, claim, accepts }: Turn<PgClient>,
  answered: Answered,
): Promise<Begun> {
  const settled = settles.flatMap(({ lease }, index) => (answered.has(index) ? [] : [lease.lane]));
  const ids = [...settled, ...(claim.lane === undefined ? [] : [claim.lane])];
  const now = inbox.ownTime();
  // An event that comes may lock its lane, and that of its first delivery.
  const held = ids.length + 2 * accepts.length + claim.limit;
  const expiredFrom = claim.limit > 0 ? inbox.cursors.expired.start() : NONE_EXPIRED;
  const [locked, [numbers, due]] = await both(
    session,
    () => lockWanted(session, ids, accepts),
    () =>
      both(
        session,
        () => newNumbers(session, { lanes: accepts.length, events: accepts.length, now, held, expiredFrom }),
        () => lockFirstDue(inbox, session, claim),
      ),
  );
  return { locked, numbers, due };
}

/** Ends a lease on a lane that this transaction has locked. */
export function settleRows({ byId, loaded: { rules } }: Workspace, request: Settle<PgClient>): SettleResult {
  const lane = byId.get(request.lease.lane);
  const event = rules.heldEvent(lane, request.lease);
  return lane === undefined || event === null ? { status: "lost" } : rules.endLease(lane, event, request);
}

/** The index in the batch of each new event, by its id. */
function indexesOf(accepted: readonly Accepted[]): ReadonlyMap<number, number> {
  const indexes = new Map<number, number>();
  for (const [index, { outcome, event }] of accepted.entries()) if (outcome !== "duplicate") indexes.set(event, index);
  return indexes;
}

/** Whether a lane of this transaction still has an expired lease, after all decisions. */
function hasExpiredLease({ byId, loaded }: Workspace): boolean {
  return [...byId.values()].some((lane) => lane.status === "leased" && laneIsDue(lane, loaded.now));
}

// Accepting: events enter their lanes, which this transaction has locked, or count as duplicates.

type Accepted = Exclude<Acceptance, { outcome: "failed" }>;

/**
 * @param ids - an id for each event
 * @param added - called with each new event and its lane, before the next event is looked at
 */
export async function acceptAll(
  work: Workspace,
  events: readonly NewEvent[],
  ids: readonly number[],
  added: (lane: LaneState, incoming: NewEvent) => void = () => {},
): Promise<readonly Accepted[]> {
  const differing = await conflictsAmong(work.session, events, (event) => work.known(event));
  const bodies = new Map<number, Parameters<typeof isConflict>[2]>();
  return events.map((incoming, index) => {
    const first = work.known(incoming);
    if (first !== undefined) {
      // If the first delivery of an event came in the same batch, its body is not stored yet.
      const conflict = differing.has(index) || isConflict(incoming, first.digest, bodies.get(first.id));
      const isFirstConflict = countDuplicate(work.sheet, first, incoming, conflict);
      if (isFirstConflict) work.addConflict(first.id, incoming);
      return duplicateOf(first, conflict);
    }
    const lane = work.laneOf(incoming);
    const id = numberAt(ids, index);
    const acceptance = work.loaded.accept(lane, incoming, id);
    const newest = lane.events.at(-1);
    if (newest !== undefined) work.identify(newest);
    if (!incoming.filtered) {
      bodies.set(id, { raw: incoming.raw, head: incoming.head ?? null });
      work.addBody(id, incoming);
    }
    added(lane, incoming);
    return acceptance;
  });
}

// Claiming: the first due lanes are locked as a batch begins, others when those were not enough.

/** Lanes that were due as the batch began, locked, the oldest first. */
interface FirstDue {
  readonly rows: readonly PgLaneRow[];
  /** True when no other due lane can be locked now. */
  readonly areAll: boolean;
}

const NONE: FirstDue = { rows: [], areAll: true };

/** Locks as many due lanes as are to be claimed, if there are as many; none if the claim names one lane. */
async function lockFirstDue(inbox: PgInbox, session: PgSession, request: ClaimRequest): Promise<FirstDue> {
  const limit = mostToClaim(request);
  if (limit === 0 || request.lane !== undefined) return NONE;
  const wanted = { now: inbox.ownTime(), limit, seen: [] };
  if (request.mode === "recover") {
    const rows = await lockDue(session, { ...wanted, recover: true, from: 0 });
    return { rows, areAll: rows.length < limit };
  }
  const fresh = request.fresh ? await lockFresh(session, wanted.now, Math.min(limit, request.fresh)) : [];
  const others = limit - fresh.length;
  if (others === 0) return { rows: fresh, areAll: false };
  const cursor = inbox.cursors.due;
  const from = cursor.start();
  const rows = await lockDue(session, { ...wanted, limit: others, seen: idsIn(fresh), recover: false, from });
  const areEnough = rows.length >= others;
  cursor.moveTo(areEnough ? (rows[0]?.ready_at ?? 0) : 0);
  return { rows: [...fresh, ...rows], areAll: !areEnough && from === 0 };
}

interface PgClaimed extends Claimed {
  /** Read before their events are claimed, because their size decides how many are. */
  readonly bodies: Map<number, EventBody>;
}

/** Claims one expired lease with `recover`, otherwise due lanes, oldest first, until there are enough or no more. */
async function claimDue(
  work: Workspace,
  request: ClaimRequest,
  claimed: PgClaimed,
  areAllLocked: boolean,
): Promise<void> {
  const left = () => roomLeft(claimed, mostToClaim(request), request.maxBytes);
  for (let areAll = areAllLocked; left() > 0; ) {
    const due = dueLanes(work, request).slice(0, left());
    await readHeads(work, due, request, claimed);
    const bytesOf = ({ id }: LaneEvent) => claimed.bodies.get(id)?.raw.byteLength ?? 0;
    for (const lane of due) if (left() > 0) work.loaded.claim(lane, request, claimed, bytesOf);
    const limit = left();
    if (limit > 0 && !areAll) {
      const seen = [...work.byId.keys()];
      const recover = request.mode === "recover";
      const rows = await lockDue(work.session, { now: work.loaded.now, limit, recover, seen, from: 0 });
      areAll = rows.length < limit;
      await work.add(rows);
    } else if (due.length === 0) return;
  }
}

/** Reads the bodies that claims of the lanes need, in their order, up to the bytes that are left. */
async function readHeads(
  { session, loaded }: Workspace,
  lanes: readonly LaneState[],
  request: ClaimRequest,
  claimed: PgClaimed,
) {
  const heads = lanes.map((lane) => loaded.rules.claimable(lane, request)).filter((event) => event !== null);
  const bodies = await readBodies(session, idsIn(heads), (request.maxBytes ?? NO_BOUND) - claimed.bytes);
  for (const [id, body] of bodies) claimed.bodies.set(id, body);
}

const mostToClaim = ({ mode, limit }: ClaimRequest): number => (mode === "recover" ? Math.min(1, limit) : limit);

/** The due lanes among those that this transaction holds, or the lane that the claim names. */
function dueLanes({ byId, loaded }: Workspace, request: ClaimRequest): readonly LaneState[] {
  const candidates = request.lane === undefined ? [...byId.values()] : [byId.get(request.lane)];
  const due = candidates
    .filter((lane) => lane !== undefined)
    .filter((lane) => (lane.status === "leased") === (request.mode === "recover") && laneIsDue(lane, loaded.now));
  return claimOrder(due, request, loaded.now);
}

// Quarantine: correctly signed bodies that are not events, within the quota of their signer.

/** The statement that inserts also counts, so that bodies of one batch see each other; an advisory lock keeps other transactions out. */
const LOCK_SIGNER = "select pg_advisory_xact_lock(hashtext('oncehook quarantine' || $1::text))";
const KEEP_BODY = `with held as (select count(*) as rows, coalesce(sum(bytes), 0) as bytes from {}.quarantine
    where state = 0 and signer = $12::text),
  known as (select 1 from {}.quarantine where digest = $1::bytea),
  room as (select 1 from held where rows < $10::bigint and bytes + $7::int <= $11::bigint),
  kept as (
    insert into {}.quarantine (digest, reason, slot, kinds, signed, accepted, bytes, trace, raw, signer, head, untimed, source, tenant)
    select $1::bytea, $2::text, $3::text, $4::text, $5::bigint, $6::bigint, $7::int, $8::text, $9::bytea, $12::text, $13::text, $14::boolean, $15::text, $16::bytea
    from room
    on conflict (digest) do nothing returning 1)
  select exists (select 1 from known) as known, exists (select 1 from room) as fits, exists (select 1 from kept) as kept`;

const HELD_BODIES = `select id, bytes, reason from {}.quarantine where state = 0 and signer = $1::text order by id`;
/** None if an operator acts on one of them meanwhile. It waits for no lock, because an erasure locks bodies before lanes. */
const DROP_BODIES = `with free as (select id from {}.quarantine where id = any($1::bigint[]) and state = 0 for update skip locked)
  update {}.quarantine set state = ${HELD.discarded}, raw = null, head = null
  where id in (select id from free) and (select count(*) from free) = cardinality($1::bigint[]) returning bytes`;

/** Lets older bodies of the signer give way. Returns how many did. */
async function makeRoom(
  { session, sheet }: Workspace,
  incoming: NewQuarantine,
  quota: QuarantineQuota,
): Promise<number> {
  const { signer, raw } = incoming;
  const held = await session.rows<HeldBody>("held_bodies", HELD_BODIES, [signer]);
  const chosen = bodiesGivingWay(held, raw.byteLength, quota) ?? [];
  if (chosen.length === 0) return 0;
  const dropped = await session.rows<Pick<HeldBody, "bytes">>("drop_bodies", DROP_BODIES, [idsIn(chosen)]);
  for (const { bytes } of dropped) {
    sheet.gauge("held", -1);
    sheet.gauge("held_bytes", -bytes);
  }
  return dropped.length;
}

interface HeldBody {
  readonly id: number;
  readonly bytes: number;
  readonly reason: string;
}

async function quarantineAll(
  work: Workspace,
  { quarantines, quarantineQuota: quota }: Turn<PgClient>,
): Promise<QuarantineAnswer[]> {
  const { session, sheet, loaded } = work;
  // Sorted, so that two batches never wait for each other.
  for (const signer of [...new Set(quarantines.map((body) => body.signer))].sort()) {
    await session.rows("quarantine_lock", LOCK_SIGNER, [signer]);
  }
  const answers: QuarantineAnswer[] = [];
  for (const body of quarantines) {
    const { digest, reason, slot, signer, source, tenant, kinds, signedAt, untimed, trace, raw, head = null } = body;
    if (!untimed) sheet.signed(signedAt);
    const facts = [Buffer.from(digest), reason, slot, kindsText(kinds), signedAt, loaded.now, raw.byteLength, trace];
    const kept = [Buffer.from(raw), quota.maxRows, quota.maxBytes, signer, head, untimed ?? null];
    const values = [...facts, ...kept, source, tenantBytes(tenant)];
    const keep = async () => quarantineAnswer((await session.rows<KeepRow>("quarantine", KEEP_BODY, values))[0]);
    let answer = await keep();
    const dropped = answer === "full" ? await makeRoom(work, body, quota) : 0;
    if (dropped > 0) answer = await keep();
    answers.push(answer === "held" && dropped > 0 ? { outcome: "made_room", dropped } : answer);
    if (answer !== "held") continue;
    sheet.count("quarantined");
    sheet.gauge("held", 1);
    sheet.gauge("held_bytes", raw.byteLength);
  }
  return answers;
}

interface KeepRow {
  readonly known: boolean;
  readonly fits: boolean;
  readonly kept: boolean;
}

function quarantineAnswer(row: KeepRow | undefined): QuarantineAnswer {
  if (row?.known === true) return "duplicate";
  if (row?.kept === true) return "held";
  // A body that fits but was not kept came through another signer meanwhile, which this statement did not see.
  return row?.fits === true ? "duplicate" : "full";
}
