/**
 * Completions with effects that are committed before their turn: those on the user's own connection, and those of a turn that
 * cannot commit with all of them.
 */
import type { LeaseRef, SettleResult, Turn } from "../../inbox/store.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { isRowFault } from "./failures.ts";
import { outsideOfEffects } from "./lending.ts";
import { settle } from "./settle.ts";
import { type Indexed, openEffects, type Plan } from "./turn.ts";
import type { Facts, Session } from "./work.ts";
import { immediately, inTransaction, type Patience, untilFree } from "./writer.ts";

const UNFINISHED: SettleResult = { status: "unfinished" };

export class AheadSettles {
  readonly #session: Session;
  readonly #own: SqliteDatabase;
  readonly #patience: Patience;
  /** Committed here while the turn they belong to failed: the core asks again, and must not be told that they are lost. */
  readonly #committed = new Map<string, SettleResult>();

  constructor(session: Session, own: SqliteDatabase, patience: Patience) {
    this.#session = session;
    this.#own = own;
    this.#patience = patience;
  }

  /** Settles what cannot wait for the turn's own transaction, and enters the results into `plan`. */
  async run(turn: Turn<SqliteDatabase>, plan: Plan, facts: Facts): Promise<void> {
    if (this.#committed.size > 0) for (const entry of turn.settles.entries()) this.#recall(plan, entry);
    if (this.#session.db === this.#own && !plan.apart) return;
    const open = openEffects(turn, plan);
    if (plan.apart) return this.#settleApart(open, plan, facts);
    if (open.length > 0) await this.#settle(open, plan, facts);
  }

  /** The turn failed after all: its effects stay committed. */
  remember(turn: Turn<SqliteDatabase>, plan: Plan): void {
    for (const [index, { lease }] of turn.settles.entries()) {
      const result = plan.answered.get(index);
      if (result?.status === "settled") this.#committed.set(keyOf(lease), result);
    }
  }

  #recall(plan: Plan, [index, { lease }]: Indexed): void {
    const result = this.#committed.get(keyOf(lease));
    if (result === undefined) return;
    this.#committed.delete(keyOf(lease));
    plan.answered.set(index, result);
  }

  /** Each in a transaction of its own: an effect may break what is checked at the commit only, and then fails alone. */
  async #settleApart(requests: readonly Indexed[], plan: Plan, facts: Facts): Promise<void> {
    for (const request of requests) {
      try {
        await this.#settle([request], plan, facts);
      } catch (error) {
        if (!isRowFault(error)) throw error;
        plan.answered.set(request[0], { status: "effect_failed", error });
      }
    }
  }

  async #settle(requests: readonly Indexed[], plan: Plan, facts: Facts): Promise<void> {
    const attempt = () => {
      // What the user does may last: the core asks again.
      if (isInUse(this.#session.db)) return requests.map(([index]) => [index, UNFINISHED] as const);
      // The user's connection may be set to wait for locks by blocking; ours finds out first that there is none.
      immediately(this.#own, () => {});
      return inTransaction(this.#session, facts, this.#patience.clock.now(), (work) =>
        requests.map(([index, request]) => [index, settle(work, request)] as const),
      );
    };
    const results = await untilFree(this.#patience, () => outsideOfEffects(attempt));
    for (const [index, result] of results) plan.answered.set(index, result);
  }
}

/**
 * Whether the user is at work on the connection: in a transaction of their own, which must not be joined, or reading row by row,
 * and then better-sqlite3 refuses everything else.
 */
function isInUse(db: SqliteDatabase): boolean {
  if (db.inTransaction) return true;
  try {
    db.exec("");
    return false;
  } catch {
    // A closed one will not be free again: what is tried on it next says so.
    return db.open;
  }
}

function keyOf({ lane, epoch, event }: LeaseRef): string {
  return `${lane} ${epoch} ${event}`;
}
