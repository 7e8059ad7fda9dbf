/** Isolates row faults: if Postgres refuses a row of a batch, only that row fails. */
import { StoreError } from "../../errors.ts";
import type { Turn, TurnResult } from "../../inbox/store.ts";
import { type Answered, runBatch } from "./batch.ts";
import { sqlState } from "./failures.ts";
import type { PgInbox } from "./open.ts";
import type { PgClient } from "./session.ts";

interface Failed {
  readonly outcome: "failed";
  readonly error: StoreError;
}

/** By their indexes among the rows, ascending. */
type Refused = ReadonlyMap<number, Failed>;

/** Rolls back a rehearsal. */
class Rehearsed extends Error {}

/** To be called inside `during()`. The batch fails as a whole unless one of its rows is at fault. */
export async function runBatchCarefully(inbox: PgInbox, turn: Turn<PgClient>, answered: Answered): Promise<TurnResult> {
  try {
    return await run(inbox, turn, answered);
  } catch (error) {
    if (!isRowFault(error)) throw error;
    const nothing = { settles: [], accepts: [], quarantines: [], claim: { ...turn.claim, limit: 0 } };
    const tryWith = (rows: Partial<Turn<PgClient>>) => rehearse(inbox, { ...turn, ...nothing, ...rows });
    const accepts = await refusedAmong(turn.accepts, inbox, (rows) => tryWith({ accepts: rows }));
    const quarantines = await refusedAmong(turn.quarantines, inbox, (rows) => tryWith({ quarantines: rows }));
    if (accepts.size + quarantines.size === 0) throw error;
    const rest = { accepts: others(turn.accepts, accepts), quarantines: others(turn.quarantines, quarantines) };
    const result = await run(inbox, { ...turn, ...rest }, answered);
    return {
      ...result,
      accepted: among(result.accepted, accepts),
      quarantined: among(result.quarantined, quarantines),
      leases: result.leases.map((lease) => ({ ...lease, acceptIndex: placeAmong(lease.acceptIndex, accepts) })),
    };
  }
}

function run(inbox: PgInbox, turn: Turn<PgClient>, answered: Answered): Promise<TurnResult> {
  return inbox.inTurn((session, slot) => runBatch(inbox, session, turn, answered, slot));
}

/** Runs everything except the commit. */
async function rehearse(inbox: PgInbox, turn: Turn<PgClient>): Promise<void> {
  const rehearsal = inbox.inTurn(async (session, slot) => {
    await runBatch(inbox, session, turn, new Map(), slot);
    await session.concluded();
    throw new Rehearsed();
  });
  await rehearsal.catch((error: unknown) => {
    if (!(error instanceof Rehearsed)) throw error;
  });
}

/** Searches by halves: finding one bad row among 256 takes about 16 tries. */
async function refusedAmong<Row>(
  rows: readonly Row[],
  inbox: PgInbox,
  tryOut: (rows: readonly Row[]) => Promise<void>,
): Promise<Refused> {
  const refused = new Map<number, Failed>();
  const search = async (from: number, to: number): Promise<void> => {
    if (from === to) return;
    try {
      await tryOut(rows.slice(from, to));
    } catch (error) {
      if (!isRowFault(error)) throw error;
      if (to - from === 1) return void refused.set(from, failed(inbox, error));
      const middle = (from + to) >> 1;
      await search(from, middle);
      await search(middle, to);
    }
  };
  await search(0, rows.length);
  return refused;
}

/** Whether the row's own values cannot be stored: of a wrong type, against a constraint, or too long for an index. */
function isRowFault(error: unknown): boolean {
  return /^(?:22|23|54)/.test(sqlState(error)) || error instanceof TypeError || error instanceof RangeError;
}

/** The server's own message quotes values; it is in the cause. */
function failed(inbox: PgInbox, cause: unknown): Failed {
  const state = sqlState(cause);
  const message = `The inbox ${inbox.location} cannot store a value of this delivery${state === "" ? "" : ` (${state})`}, now or later: see the cause.`;
  const fields = { sqlState: state === "" ? null : state };
  return { outcome: "failed", error: new StoreError("store_unavailable", message, { cause, fields }) };
}

function others<Row>(rows: readonly Row[], refused: Refused): readonly Row[] {
  return rows.filter((_row, index) => !refused.has(index));
}

/** The answers of the other rows, with those of the refused rows at their indexes. */
function among<Answer>(answers: readonly Answer[], refused: Refused): (Answer | Failed)[] {
  const all: (Answer | Failed)[] = [...answers];
  for (const [index, answer] of refused) all.splice(index, 0, answer);
  return all;
}

/** The original index of the row at `index` of the other rows. */
function placeAmong(index: number | null, refused: Refused): number | null {
  if (index === null) return null;
  let place = index;
  for (const taken of refused.keys()) if (taken <= place) place++;
  return place;
}
