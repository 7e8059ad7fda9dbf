/**
 * Accepts events that each begin a message, in one statement and one round trip: a lane that is not there yet needs no lock, and nothing
 * has to be read to decide what it does next.
 */
import { gapBefore } from "../../inbox/gap.ts";
import { isOrdered } from "../../inbox/lanes/state.ts";
import type { NewEvent } from "../../inbox/record.ts";
import type { InboxRules, Turn, TurnResult } from "../../inbox/store.ts";
import { STATE, STATUS } from "../codes.ts";
import { type Columns, named, transposed, unnested, type Values } from "./columns.ts";
import type { PgClient } from "./driver.ts";
import { isUnanswered } from "./failures.ts";
import { isLaneTaken } from "./flush-statement.ts";
import { keyOf, keyText, nullableBytes } from "./lanes.ts";
import type { Names } from "./names.ts";
import { listed, numberAt } from "./numbers.ts";
import type { OpenInbox } from "./open-inbox.ts";
import type { Session } from "./session.ts";
import { TALLY, TallySheet } from "./tally.ts";

/** What differs between such events; of everything else a new one says the same. */
const FRESH: Columns = [
  ["client", "int"],
  ["tag", "smallint"],
  ["message", "bytea"],
  ["peer", "bytea"],
  ["reference", "bytea"],
  ["seq", "bigint"],
  ["kind", "int"],
  ["occurred", "bigint"],
  ["signed", "bigint"],
  ["digest", "bytea"],
  ["trace", "text"],
  ["gap_wait", "bigint"],
  ["raw", "bytea"],
];

/**
 * A transaction by itself, and on disk when it is answered, whatever the server's default. It fails where a lane is there already
 * (`isLaneTaken()`), and where the table has not kept one. Lanes are made in the order in which every transaction makes them.
 */
const ACCEPT = `with clock as (
    select coalesce($${FRESH.length + 1}::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) as now
    where set_config('synchronous_commit', 'on', true) = 'on'),
  fresh as materialized (
    select nextval('{}.lane_id') as lane, nextval('{}.event_id') as id, now, new.*
    from clock cross join ${unnested(FRESH, 0)} with ordinality as new (${named(FRESH)}, place)),
  lanes as (
    insert into {}.lane (id, client, tag, message, status, ready_at, peer, reference)
    select lane, client, tag, message, ${STATUS.ready}, now, peer, reference from fresh order by client, tag, message
    returning 1),
  events as (
    insert into {}.event (id, lane, seq, kind, state, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed,
      accepted, digest, trace, has_body)
    select id, lane, seq, kind, ${STATE.pending}, 0, false, false, 0, false, gap_wait, occurred, signed, now, digest, trace, true
    from fresh),
  bodies as (insert into {}.body (event, raw) select id, raw from fresh),
  tally as (${TALLY(FRESH.length + 1)})
  select now, array(select lane from fresh order by place)::text as lanes, array(select id from fresh order by place)::text as events,
    1 / ((select count(*) from lanes) = cardinality($1::int[]))::int as made
  from clock`;

interface Accepted {
  readonly now: number;
  /** Numbers in the order of the events, as `{1,2}`. */
  readonly lanes: string;
  readonly events: string;
}

/** Turns that are run as others once a lane was there already: deliveries repeat in bursts, and each of these would be written twice. */
const TURNS_AFTER_TAKEN = 16;

export class FreshLanes {
  readonly #inbox: OpenInbox;
  #turnsToPass = 0;

  constructor(inbox: OpenInbox) {
    this.#inbox = inbox;
  }

  /**
   * Runs a turn that does nothing but accept such events. Null where the turn does more, or an event begins no message after all, or
   * anything else is in the way: then nothing was written, and the turn is to be run as any other, which tells what it was.
   *
   * @throws what left it open whether the turn was written
   */
  async run(turn: Turn<PgClient>): Promise<TurnResult | null> {
    if (!acceptsAlone(turn) || !turn.accepts.every((event) => isFirst(event, this.#inbox.rules))) return null;
    if (this.#turnsToPass > 0) {
      this.#turnsToPass -= 1;
      return null;
    }
    try {
      const accepted = await this.#inbox.inStatement((session, slot) => this.#accept(session, turn.accepts, slot));
      if (accepted === null) return null;
      await this.#inbox.wroteAt(accepted.now);
      return resultOf(accepted);
    } catch (error) {
      if (isUnanswered(error)) throw error;
      if (isLaneTaken(error)) this.#turnsToPass = TURNS_AFTER_TAKEN;
      return null;
    }
  }

  async #accept(session: Session, events: readonly NewEvent[], slot: number): Promise<Accepted | null> {
    const names = this.#inbox.names.on(session);
    await names.find(session, events);
    const keys = events.map(({ lane }) => keyOf(names, lane));
    if (new Set(keys.map(keyText)).size < keys.length) return null;
    const sheet = new TallySheet(this.#inbox.instance, slot);
    for (const { signedAt } of events) sheet.signed(signedAt);
    sheet.count("accepted", events.length);
    sheet.gauge("pending", events.length);
    const values = transposed(
      FRESH,
      events.map((event) => valuesOf(names, event)),
    );
    const rows = await session.rows<Accepted>("accept_fresh", ACCEPT, [
      ...values,
      this.#inbox.ownTime(),
      ...sheet.values(),
    ]);
    return rows[0] ?? null;
  }
}

function acceptsAlone({ accepts, settles, quarantines, repeats, claim }: Turn<PgClient>): boolean {
  const others = settles.length + quarantines.length + repeats.length + claim.limit;
  return accepts.length > 0 && others === 0 && claim.lane === undefined;
}

/** Whether nothing is missing before it in a lane that begins with it, so that it is ready at once. */
function isFirst({ lane, sequence }: NewEvent, { firstSequence }: InboxRules): boolean {
  const position = { ordered: isOrdered({ key: lane }), cursor: null, firstSequence, isSettled: () => false };
  return gapBefore(position, { sequence }) === null;
}

function valuesOf(names: Names, event: NewEvent): Values {
  const { client, tag, message } = keyOf(names, event.lane);
  const { peer, externalReference, sequence, eventType, occurredAt, signedAt, digest, trace, gapWaitMs, raw } = event;
  return [
    ...[client, tag, message, nullableBytes(peer), nullableBytes(externalReference)],
    ...[sequence, names.kindId(eventType), occurredAt, signedAt, digest, trace, Math.round(gapWaitMs), raw],
  ];
}

function resultOf(accepted: Accepted): TurnResult {
  const lanes = listed(accepted.lanes);
  return {
    settled: [],
    accepted: listed(accepted.events).map((event, index) => ({
      outcome: "accepted",
      event,
      lane: numberAt(lanes, index),
    })),
    quarantined: [],
    leases: [],
    retired: [],
    recoveryDue: false,
  };
}
