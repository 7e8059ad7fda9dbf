/** Completions with effects on the user's own connection, in a transaction of their own before the turn's. */
import type { LeaseRef, Settle, SettleResult, Turn } from "../../inbox/store.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { settle } from "./settle.ts";
import { amend, type Plan } from "./turn.ts";
import type { Facts, Session } from "./work.ts";
import { immediately, inTransaction, type Patience, untilFree } from "./writer.ts";

/** A completion, and its place in the turn. */
type Indexed = readonly [index: number, request: Settle<SqliteDatabase>];

export class AheadSettles {
  readonly #user: Session;
  readonly #own: SqliteDatabase;
  readonly #patience: Patience;
  /** Committed here while the turn they belong to failed: the core asks again, and must not be told that they are lost. */
  readonly #committed = new Map<string, SettleResult>();

  constructor(user: Session, own: SqliteDatabase, patience: Patience) {
    this.#user = user;
    this.#own = own;
    this.#patience = patience;
  }

  /** Settles what has effects and enters the results into `plan`. */
  async run(turn: Turn<SqliteDatabase>, plan: Plan, facts: Facts): Promise<void> {
    const withEffects = [...turn.settles.entries()].filter(
      ([, request]) => request.kind === "complete" && request.effects.length > 0,
    );
    for (const entry of withEffects) this.#recall(plan, entry);
    for (;;) {
      const open = withEffects.filter(([index]) => !plan.answered.has(index));
      if (open.length === 0) return;
      try {
        const results = await this.#settle(open, facts);
        for (const [index, result] of results) plan.answered.set(index, result);
      } catch (error) {
        if (!amend(plan, turn, error)) throw error;
      }
    }
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

  #settle(requests: readonly Indexed[], facts: Facts): Promise<[number, SettleResult][]> {
    return untilFree(this.#patience, () => {
      if (this.#user.db.inTransaction) throw new UserIsBusy();
      // The user's connection may be set to wait for locks by blocking; ours finds out first that there is none.
      immediately(this.#own, () => {});
      return inTransaction(this.#user, facts, this.#patience.clock.now(), (work) =>
        requests.map(([index, request]): [number, SettleResult] => [index, settle(work, request)]),
      );
    });
  }
}

/** The connection given as `effects` is in a transaction of the user's own, which must not be joined. */
class UserIsBusy extends Error {
  readonly code = "SQLITE_BUSY_EFFECTS";
}

function keyOf({ lane, epoch, event }: LeaseRef): string {
  return `${lane} ${epoch} ${event}`;
}
