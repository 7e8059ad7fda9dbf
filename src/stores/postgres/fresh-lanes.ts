/**
 * Accepts events that are each the first of a lane, in one statement and one round trip: a lane that does not exist needs no lock, and
 * its next step can be decided without reading anything.
 */
import { gapBefore, PLACES } from "../../inbox/gap.ts";
import { identityText, isNamed, isShared, laneKeyText } from "../../inbox/lane-key.ts";
import type { NewEvent } from "../../inbox/record.ts";
import type { SequenceBook } from "../../inbox/sequence-rules.ts";
import type { Turn, TurnResult } from "../../inbox/store.ts";
import { ORDER, orderCode, STATE, STATUS } from "../database.ts";
import {
  type Columns,
  columnNames,
  columns,
  idBytes,
  nullableBytes,
  tenantBytes,
  textBytes,
  transposed,
  unnested,
  type Values,
} from "./encoding.ts";
import { isRefusal } from "./failures.ts";
import { TALLY, TallySheet } from "./instances.ts";
import { listed, numberAt } from "./lanes.ts";
import type { PgInbox } from "./open.ts";
import { CLOCK, COMMITS_TO_DISK, type PgClient, type PgSession } from "./session.ts";
import { BY_OWN_ID } from "./statements.ts";

/** The columns that differ between such events; all others have the same values in a new event. */
const FRESH = columns(
  "source text, tenant bytea, name bytea, ord smallint, peer bytea, reference bytea, seq bigint, type bytea, occurred bigint, signed bigint, digest bytea, trace text, gap_wait bigint, raw bytea",
);
/** More columns, which events by sequence do not need. */
const OF_SOURCE = columns("own_id bytea, untimed boolean, head text");

/**
 * A transaction by itself, on disk when it is answered, whatever the server's default. Fails if a lane exists already or the table did not
 * keep one. Reads no table, so that its plan stays good. Creates lanes in the same order as every other transaction.
 *
 * @param ofEvent - columns of `more` that an event has, and how they are selected
 * @param ofBody - columns of `more` that a body has
 */
function acceptOf(more: Columns, ofEvent = { columns: "", values: "", order: "" }, ofBody = ""): string {
  const fresh = [...FRESH, ...more];
  return `with clock as (
    select coalesce($${fresh.length + 1}::bigint, ${CLOCK}) as now where ${COMMITS_TO_DISK} = 'on'),
  fresh as materialized (
    select nextval('{}.lane_id') as lane, nextval('{}.event_id') as id, now, new.*
    from clock cross join ${unnested(fresh, 0)} with ordinality as new (${columnNames(fresh)}, place)),
  lanes as (
    insert into {}.lane (id, name, source, tenant, ord, status, ready_at, peer, reference)
    select lane, name, source, tenant, ord, ${STATUS.ready}, now, peer, reference from fresh order by name, source, tenant, ord
    returning 1),
  events as (
    insert into {}.event (id, lane, seq, type, source, tenant, state, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed,
      accepted, digest, trace, has_body${ofEvent.columns})
    select id, lane, coalesce(seq, id), type, source, tenant, ${STATE.pending}, 0, false, false, 0, false, gap_wait, occurred, signed,
      now, digest, trace, true${ofEvent.values}
    from fresh ${ofEvent.order}),
  bodies as (insert into {}.body (event, raw${ofBody}) select id, raw${ofBody} from fresh),
  tally as (${TALLY(fresh.length + 1)})
  select now, array(select lane from fresh order by place)::text as lanes, array(select id from fresh order by place)::text as events,
    1 / ((select count(*) from lanes) = cardinality($1::text[]))::int as made
  from clock`;
}

const ACCEPT = { name: "accept_fresh", columns: FRESH, text: acceptOf([]) };
const ACCEPT_OF_SOURCE = {
  name: "accept_fresh_of_source",
  columns: [...FRESH, ...OF_SOURCE],
  text: acceptOf(
    OF_SOURCE,
    {
      columns: ", own_id, untimed, shared",
      values: `, own_id, untimed, case when ord > ${ORDER.sequence} then true end`,
      order: BY_OWN_ID,
    },
    ", head",
  ),
};

interface Accepted {
  readonly now: number;
  /** Ids in the order of the events, as `{1,2}`. */
  readonly lanes: string;
  readonly events: string;
}

/** After a refusal, this many batches take the ordinary way: deliveries repeat in bursts, and each would be tried twice. */
const TURNS_AFTER_REFUSAL = 16;
/** Whether an event of another source is the first of a shared lane is a guess. Each wrong one in a row doubles the wait, up to this. */
const MOST_TURNS = 1_024;

/** How many batches still take the ordinary way. */
class Pause {
  readonly #most: number;
  #turns = 0;
  #next = TURNS_AFTER_REFUSAL;

  constructor(most: number) {
    this.#most = most;
  }

  get isOver(): boolean {
    return this.#turns === 0;
  }

  pass(): void {
    this.#turns -= 1;
  }

  begin(): void {
    this.#turns = this.#next;
    this.#next = Math.min(this.#most, this.#next * 2);
  }

  reset(): void {
    this.#next = TURNS_AFTER_REFUSAL;
  }
}

export class FreshLanes {
  readonly #inbox: PgInbox;
  readonly #ownPause = new Pause(TURNS_AFTER_REFUSAL);
  /** Of batches with an event of a shared lane. They must not hold up those without. */
  readonly #sharedPause = new Pause(MOST_TURNS);

  constructor(inbox: PgInbox) {
    this.#inbox = inbox;
  }

  /**
   * Runs a batch that only accepts such events. Null if the batch does more, if an event is not the first of its lane after all, or on
   * any other obstacle: then nothing was written. Run the batch in the ordinary way, which reports the reason.
   *
   * @throws an error that leaves open whether the batch was written
   */
  async run(turn: Turn<PgClient>): Promise<TurnResult | null> {
    if (!acceptsAlone(turn) || !this.#areFresh(turn.accepts)) return null;
    const pause = this.#pauseOf(turn.accepts);
    if (!pause.isOver) {
      pause.pass();
      return null;
    }
    const accepted = await this.#inbox
      .inStatement((session, slot) => this.#accept(session, turn.accepts, slot))
      .catch((error: unknown) => this.#passAfter(error, pause));
    if (accepted === null) return null;
    pause.reset();
    return resultOf(accepted);
  }

  #pauseOf(events: readonly NewEvent[]): Pause {
    return events.some(({ lane }) => isShared(lane)) ? this.#sharedPause : this.#ownPause;
  }

  #passAfter(error: unknown, pause: Pause): null {
    if (!isRefusal(error) && !(error instanceof TypeError)) throw error;
    pause.begin();
    return null;
  }

  /** Whether each event may be the first of its lane. */
  #areFresh(events: readonly NewEvent[]): boolean {
    if (!events.every((event) => isFirst(event, this.#inbox.sequences))) return false;
    const texts = events.map((event) => (isNamed(event.lane) ? laneKeyText(event.lane) : identityText(event)));
    const ids = new Set(events.map(identityText));
    return new Set(texts).size === events.length && ids.size === events.length;
  }

  async #accept(session: PgSession, events: readonly NewEvent[], slot: number): Promise<Accepted> {
    const sheet = new TallySheet(this.#inbox.instance, slot);
    for (const { signedAt, untimed } of events) if (!untimed) sheet.signed(signedAt);
    sheet.count("accepted", events.length);
    sheet.gauge("pending", events.length);
    const isPlain = events.every(({ ownId, untimed, head }) => ownId === undefined && !untimed && head === undefined);
    const { name, columns: fresh, text } = isPlain ? ACCEPT : ACCEPT_OF_SOURCE;
    const arrays = transposed(
      fresh,
      events.map((event) => [...valuesOf(event), ...(isPlain ? [] : sourceValues(event))]),
    );
    const values = [...arrays, this.#inbox.ownTime(), ...sheet.values()];
    const [row] = await session.rows<Accepted>(name, text, values);
    if (row === undefined) throw new Error("A statement that accepts events returned no row.");
    return row;
  }
}

function acceptsAlone({ accepts, settles, quarantines, claim }: Turn<PgClient>): boolean {
  const others = settles.length + quarantines.length + claim.limit;
  return accepts.length > 0 && others === 0 && claim.lane === undefined;
}

/** Whether the event can be the first of its lane without a gap before it, so that it is ready at once. */
function isFirst({ lane, sequence, gapWaitMs, filtered, repeats }: NewEvent, sequences: SequenceBook): boolean {
  if (filtered || repeats !== undefined) return false;
  const { order, source } = lane;
  if (order === "position") return gapWaitMs === 0;
  // The ordinary way reads the entry first: another process may have recorded it.
  if (order === "sequence" && !sequences.knows(source)) return false;
  const { firstSequence } = sequences.of(source);
  return gapBefore({ order, cursor: null, firstSequence, isSettled: () => false }, { sequence }) === null;
}

function valuesOf(event: NewEvent): Values {
  const { source, tenant, name, order } = event.lane;
  const { peer, externalReference, eventType, occurredAt, signedAt, digest, trace, gapWaitMs, raw } = event;
  return [
    ...[source, tenantBytes(tenant), nullableBytes(name), orderCode(order)],
    ...[nullableBytes(peer), nullableBytes(externalReference)],
    ...[sequenceOf(event), textBytes(eventType), occurredAt, signedAt, digest, trace, Math.round(gapWaitMs), raw],
  ];
}

/** The sequence of a lane's first event, as `LaneRules.arrivalOf` gives it. Null: the event's id. */
function sequenceOf({ lane: { order }, sequence }: NewEvent): number | null {
  if (order === "arrival") return null;
  return order === "position" ? sequence * PLACES : sequence;
}

function sourceValues({ ownId, untimed, head }: NewEvent): Values {
  return [ownId === undefined ? null : idBytes(ownId), untimed ? true : null, head ?? null];
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
    untaken: [],
    recoveryDue: false,
  };
}
