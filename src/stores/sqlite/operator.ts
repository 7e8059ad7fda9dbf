/** An operator's acts on the SQLite inbox, and the erasure of a person's data from it and its file; what identifies an event stays. */

import { setImmediate } from "node:timers/promises";
import { isShared } from "../../inbox/lane-key.ts";
import { isHeld } from "../../inbox/lane-port.ts";
import type { EventId } from "../../inbox/record.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { auditDetail } from "../../inbox/store-rules.ts";
import { createMentionTest } from "../../inbox/subject.ts";
import { sleep } from "../../internal/clock.ts";
import { HELD, idValue, ORDER } from "../database.ts";
import { accept } from "./batch.ts";
import { checkpoint } from "./disk-space.ts";
import { SqliteLanes, toEntry } from "./lanes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { inSlices, lanesWith, Pace, type Walk } from "./queries.ts";
import type { Work } from "./transaction.ts";

const PAUSE_MS = 25;

/** What is still to be erased. */
interface Rest {
  readonly lanes: Set<number>;
  readonly quarantined: Set<number>;
  /** One of the bodies was replayed, perhaps into a lane that was not there yet when lanes were looked for. */
  replayed: boolean;
  readonly search: EraseSearch;
}

/**
 * Erases in as many transactions as it takes to leave the event loop free in between: the act can be repeated, so that
 * nothing is wrong after some of them. Nothing at all happens if one of the events is being handled at the start; if one
 * comes to be handled later, what was erased by then stays erased.
 *
 * @param audit - writes the audit row, in the last of the transactions
 */
async function erase(
  inbox: OpenInbox,
  subject: Subject,
  audit: (work: Work, count: number) => void,
): Promise<ActResult> {
  const search = new EraseSearch(inbox, subject);
  let rest = await restOf(search);
  const pace = new Pace(inbox.patience.clock);
  for (let count = 0; ; ) {
    const { busy, lanes, quarantined, erased, replayed } = await pace.take((size) =>
      inbox.write((work) => {
        const batch = eraseBatch(work, rest, size);
        const sum = count + batch.erased;
        if (batch.busy ? sum > 0 : isLast(rest, batch)) audit(work, sum);
        return batch;
      }),
    );
    count += erased;
    for (const id of lanes) rest.lanes.delete(id);
    for (const id of quarantined) rest.quarantined.delete(id);
    rest.replayed ||= replayed;
    const isEmpty = rest.lanes.size + rest.quarantined.size === 0;
    if (busy || (isEmpty && !rest.replayed)) {
      if (!busy || count > 0) await inbox.during(() => emptyLog(inbox));
      return busy ? { ok: false, reason: "in_progress" } : { ok: true, count };
    }
    // The log is copied bit by bit, or one commit would have to copy all of it.
    await inbox.during(() => checkpoint(inbox.db, "PASSIVE"));
    await setImmediate();
    if (isEmpty) rest = await restOf(search);
  }
}

async function restOf(search: EraseSearch): Promise<Rest> {
  return { lanes: await search.lanes(), quarantined: new Set(await search.quarantined()), replayed: false, search };
}

interface Batch {
  /** One of the events is being handled: nothing was erased. */
  readonly busy: boolean;
  readonly lanes: readonly number[];
  readonly quarantined: readonly number[];
  /** Events and quarantined bodies. */
  readonly erased: number;
  /** One of these bodies was replayed. */
  readonly replayed: boolean;
}

interface LeasedRow {
  readonly id: number;
  readonly readyAt: number | null;
}

function isLast(rest: Rest, { lanes, quarantined, replayed }: Batch): boolean {
  const isAll = lanes.length === rest.lanes.size && quarantined.length === rest.quarantined.size;
  return isAll && !rest.replayed && !replayed;
}

function eraseBatch(work: Work, rest: Rest, size: number): Batch {
  const { db } = work;
  const leased = db.prepare("select id, ready_at as readyAt from oncehook_lane where status = 2").all() as LeasedRow[];
  if (leased.some(({ id, readyAt }) => rest.lanes.has(id) && isHeld({ status: "leased", readyAt }, work.now))) {
    return { busy: true, lanes: [], quarantined: [], erased: 0, replayed: false };
  }
  const lanes = [...take(rest.lanes, size)];
  const quarantined = [...take(rest.quarantined, size - lanes.length)];
  // Freed space is overwritten even where that costs writes.
  db.pragma("secure_delete = ON");
  try {
    const bodies = eraseQuarantined(work, quarantined);
    return {
      busy: false,
      lanes,
      quarantined,
      ...bodies,
      erased: eraseLanes(work, lanes, rest.search) + bodies.erased,
    };
  } finally {
    db.pragma("secure_delete = FAST");
  }
}

function* take(ids: Iterable<number>, size: number): Iterable<number> {
  let taken = 0;
  for (const id of ids) {
    if (taken++ >= size) return;
    yield id;
  }
}

/** Takes the erased data out of the write-ahead log, as soon as no other connection reads it. */
async function emptyLog(inbox: OpenInbox): Promise<void> {
  const { clock, busyTimeoutMs } = inbox.patience;
  const deadline = clock.monotonic() + busyTimeoutMs;
  while (!checkpoint(inbox.db, "TRUNCATE")) {
    if (clock.monotonic() >= deadline) {
      const message = "Erased data stays in the write-ahead log until its readers end: erase again, or close them.";
      return inbox.context.logger.warn({ location: inbox.patience.location }, message);
    }
    await sleep(clock, PAUSE_MS);
  }
}

/** The events of which a lane still holds a number, a reference or a text. */
const HOLDING = `select e.id from oncehook_event e, oncehook_lane l where l.id = ? and e.lane = l.id
  and (l.peer is not null or l.reference is not null or e.error is not null
    or exists (select 1 from oncehook_body where event = e.id) or exists (select 1 from oncehook_conflict where event = e.id)
    or exists (select 1 from oncehook_attempt where event = e.id and error <> ''))`;

/** The bodies of a lane's events, and those of conflicts. */
const BODIES = ["body", "conflict"].map((table) => ({
  ids: `select e.id from oncehook_event e join oncehook_${table} b on b.event = e.id where e.lane = ?`,
  raw: `select raw from oncehook_${table} where event = ?`,
}));

/** Returns the number of events of which something was still held. */
function eraseLanes(work: Work, ids: readonly number[], search: EraseSearch): number {
  const lanes = new SqliteLanes(work);
  const holding = work.db.prepare(HOLDING);
  let events = 0;
  for (const id of ids) {
    const lane = lanes.lane(id);
    if (lane === undefined) continue;
    const held = (holding.all(id) as { readonly id: number }[]).map((row) => row.id);
    const about = isShared({ order: lanes.order(lane) }) ? search.namedIn(work, id) : null;
    events += held.filter((event) => about?.has(event) ?? true).length;
    lanes.rules.erase(lane, about);
  }
  return events;
}

/** Bodies that were still there. */
function eraseQuarantined(work: Work, ids: readonly number[]): Pick<Batch, "erased" | "replayed"> {
  const select = work.db.prepare("select state, bytes from oncehook_quarantine where id = ? and raw is not null");
  const clear = work.db.prepare("update oncehook_quarantine set raw = null, head = null, state = ? where id = ?");
  let [erased, replayed] = [0, false];
  for (const id of ids) {
    const row = select.get(id) as { readonly state: number; readonly bytes: number } | undefined;
    if (row === undefined) continue;
    erased++;
    replayed ||= row.state === HELD.replayed;
    clear.run(row.state === HELD.held ? HELD.discarded : row.state, id);
    if (row.state !== HELD.held) continue;
    work.ledger.gauge("held", -1);
    work.ledger.gauge("held_bytes", -row.bytes);
  }
  return { erased, replayed };
}

// Finds what is to be erased, in slices that leave the event loop free.

type Subject = Extract<Act, { kind: "erase" }>["subject"];

/** A body that has neither the text nor an escape of JSON or of a form in it cannot name it, and need not be read. */
const MAY_NAME = "(instr(raw, ?) > 0 or instr(raw, x'5c') > 0 or instr(raw, x'25') > 0)";

const QUARANTINED = `select id, id as body from oncehook_quarantine where id between ? and ? and raw is not null and ${MAY_NAME}`;

const WITH_OWN_ID = "from oncehook_event indexed by oncehook_event_own_id where own_id = ?";
const EVENT_OF_ID = `select id ${WITH_OWN_ID} and lane = ?`;
/** By sequence a lane is a message. */
const LANES_OF_ID = `select id from oncehook_lane where name = ? and ord = ${ORDER.sequence} union select lane as id ${WITH_OWN_ID}`;

/** Lanes whose fields name nobody: only the bodies show whom they are about. */
const silent = (bodies: string, where: string) => `select l.id, b.event as body
  from oncehook_lane l cross join oncehook_event e on e.lane = l.id cross join ${bodies} b on b.event = e.id
  where l.id between ? and ? and ${where} and ${MAY_NAME}`;

/** A row of a search, and the id of its body. */
interface Searched {
  readonly id: number;
  readonly body: number;
}

/** Looks through one inbox for one subject. */
class EraseSearch {
  readonly #inbox: OpenInbox;
  readonly #subject: Subject;
  readonly #text: Buffer;
  readonly #isNamedIn: (raw: Uint8Array) => boolean;

  constructor(inbox: OpenInbox, subject: Subject) {
    const text = "peer" in subject ? subject.peer : subject.id;
    this.#inbox = inbox;
    this.#subject = subject;
    this.#text = Buffer.from(text);
    this.#isNamedIn = createMentionTest(text);
  }

  /** Ids of the lanes that are about it, and of those whose bodies name it. */
  async lanes(): Promise<Set<number>> {
    const subject = this.#subject;
    const byPeer = "peer" in subject;
    const told = await this.#inbox.during(() =>
      byPeer
        ? lanesWith(this.#inbox, "peer", subject.peer)
        : this.#rows(LANES_OF_ID, [subject.id, idValue(subject.id)]).map(({ id }) => id),
    );
    const where = byPeer ? "l.peer is null" : `l.ord <> ${ORDER.sequence}`;
    const of = (bodies: string) =>
      this.#scan("oncehook_lane", silent(bodies, where), `select raw from ${bodies} where event = ?`);
    const accepted = await of("oncehook_body");
    const conflicting = await of("oncehook_conflict");
    return new Set([...told, ...accepted, ...conflicting]);
  }

  /** The events of a lane that are about it: its others may be about somebody else. */
  namedIn({ db }: Work, lane: number): ReadonlySet<number> {
    const named = new Set<number>();
    const subject = this.#subject;
    if ("id" in subject)
      for (const { id } of db.prepare(EVENT_OF_ID).all(idValue(subject.id), lane) as Searched[]) named.add(id);
    for (const { ids, raw } of BODIES) {
      const rows = db.prepare(ids).all(lane) as { readonly id: number }[];
      const body = db.prepare(raw);
      // One by one, because each may be large.
      for (const { id } of rows) if (this.#isNamedIn((body.get(id) as { readonly raw: Buffer }).raw)) named.add(id);
    }
    return named;
  }

  /** Ids of the quarantined bodies that name it. */
  quarantined(): Promise<number[]> {
    return this.#scan("oncehook_quarantine", QUARANTINED, "select raw from oncehook_quarantine where id = ?");
  }

  /** @param raw - the SQL of one body */
  async #scan(table: Walk["table"], sql: string, raw: string): Promise<number[]> {
    const found: number[] = [];
    await inSlices(this.#inbox, { table }, async (from, to) => {
      found.push(...(await this.#inbox.during(() => this.#named(raw, this.#rows(sql, [from, to, this.#text])))));
      return false;
    });
    return found;
  }

  #rows(sql: string, values: readonly unknown[]): readonly Searched[] {
    return this.#inbox.db.prepare(sql).all(...values) as Searched[];
  }

  /** Reads one body after the other, because each may be large. */
  #named(raw: string, rows: readonly Searched[]): number[] {
    const body = this.#inbox.db.prepare(raw);
    const isNamed = ({ body: id }: Searched) => this.#isNamedIn((body.get(id) as { readonly raw: Buffer }).raw);
    return rows.filter(isNamed).map(({ id }) => id);
  }
}

type Refusal = Extract<ActResult, { ok: false }>;

export async function act(inbox: OpenInbox, request: Act, by: string): Promise<ActResult> {
  inbox.checkFiles();
  if (request.kind === "erase") {
    return erase(inbox, request.subject, (work, count) => audit(work, request, by, count));
  }
  return inbox.write((work) => {
    const done = perform(work, request);
    if (done.ok) audit(work, request, by, done.count);
    return done;
  });
}

function audit(work: Work, request: Act, by: string, count: number): void {
  const insert = work.db.prepare("insert into oncehook_audit (at, by, act, detail) values (?, ?, ?, ?)");
  insert.run(work.now, by, request.kind, auditDetail(request, count));
}

function perform(work: Work, request: Exclude<Act, { kind: "erase" }>): ActResult {
  const lanes = new SqliteLanes(work);
  switch (request.kind) {
    case "replay":
    case "discard": {
      const row = work.sql.entry.get(request.event);
      if (row === undefined) return refuse("not_found");
      return lanes.rules[request.kind](lanes.lane(row.lane), toEntry(row), request);
    }
    case "unblock":
      return lanes.rules.unblock(lanes.lane(request.lane));
    case "release_gap":
      return lanes.rules.releaseGap(lanes.lane(request.lane));
    case "replay_quarantined":
      return replayQuarantined(lanes, request);
    case "discard_quarantined": {
      const row = heldQuarantine(work, request.quarantine);
      if (!("bytes" in row)) return row;
      letGo(work, row, HELD.discarded, null);
      return { ok: true, count: 1 };
    }
    case "reveal":
      return there(work, "oncehook_lane", request.lane);
    case "reveal_quarantined":
      return there(work, "oncehook_quarantine", request.quarantine);
    default:
      return request satisfies never;
  }
}

function there({ db }: Work, table: "oncehook_lane" | "oncehook_quarantine", id: number): ActResult {
  const row = db.prepare(`select 1 from ${table} where id = ?`).get(id);
  return row === undefined ? { ok: false, reason: "not_found" } : { ok: true, count: 1 };
}

interface HeldRow {
  readonly id: number;
  readonly state: number;
  readonly bytes: number;
  readonly hasBody: number;
}

function heldQuarantine(work: Work, id: number): HeldRow | Refusal {
  const row = work.db
    .prepare("select id, state, bytes, raw is not null as hasBody from oncehook_quarantine where id = ?")
    .get(id) as HeldRow | undefined;
  if (row === undefined) return refuse("not_found");
  return row.state === HELD.held ? row : refuse("wrong_state");
}

function letGo(work: Work, row: HeldRow, state: number, replayedAs: EventId | null): void {
  work.db
    .prepare("update oncehook_quarantine set state = ?, replayed_as = ? where id = ?")
    .run(state, replayedAs, row.id);
  work.ledger.gauge("held", -1);
  work.ledger.gauge("held_bytes", -row.bytes);
}

function replayQuarantined(lanes: SqliteLanes, request: Extract<Act, { kind: "replay_quarantined" }>): ActResult {
  const row = heldQuarantine(lanes.work, request.quarantine);
  if (!("bytes" in row)) return row;
  if (row.hasBody === 0) return refuse("body_pruned");
  const mode = { claim: null, claimed: { leases: [], retired: [], untaken: [], bytes: 0 } };
  const acceptance = accept(lanes, request.event, null, mode);
  if (acceptance.outcome === "failed") throw acceptance.error;
  letGo(lanes.work, row, HELD.replayed, acceptance.event);
  return { ok: true, event: acceptance.event, count: 1 };
}

function refuse(reason: Refusal["reason"]): Refusal {
  return { ok: false, reason };
}
