/** Completions with effects on the user's own connection, in a transaction of their own before the turn's. */
import type { LeaseRef, SettleResult, Turn } from "../../inbox/store.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { settle } from "./settle.ts";
import { amend, type Plan } from "./turn.ts";
import type { Facts, Session } from "./work.ts";
import { immediately, inTransaction, type Patience, untilFree } from "./writer.ts";

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
    const indexes = turn.settles.flatMap((request, index) =>
      request.kind === "complete" && request.effects.length > 0 ? [index] : [],
    );
    for (const index of indexes) this.#recall(turn, plan, index);
    for (;;) {
      const open = indexes.filter((index) => !plan.answered.has(index));
      if (open.length === 0) return;
      try {
        const results = await this.#settle(turn, open, facts);
        for (const [index, result] of results) plan.answered.set(index, result);
      } catch (error) {
        if (!amend(plan, turn, error)) throw error;
      }
    }
  }

  /** The turn failed after all: its effects stay committed. */
  remember(turn: Turn<SqliteDatabase>, plan: Plan): void {
    for (const [index, result] of plan.answered) {
      const request = turn.settles[index];
      if (request !== undefined && result.status === "settled") this.#committed.set(keyOf(request.lease), result);
    }
  }

  #recall(turn: Turn<SqliteDatabase>, plan: Plan, index: number): void {
    const request = turn.settles[index];
    if (request === undefined) return;
    const result = this.#committed.get(keyOf(request.lease));
    if (result === undefined) return;
    this.#committed.delete(keyOf(request.lease));
    plan.answered.set(index, result);
  }

  #settle(turn: Turn<SqliteDatabase>, indexes: readonly number[], facts: Facts): Promise<[number, SettleResult][]> {
    return untilFree(this.#patience, () => {
      if (this.#user.db.inTransaction) throw new UserIsBusy();
      // The user's connection may be set to wait for locks by blocking; ours finds out first that there is none.
      immediately(this.#own, () => {});
      return inTransaction(this.#user, facts, this.#patience.clock.now(), (work) =>
        indexes.flatMap((index): [number, SettleResult][] => {
          const request = turn.settles[index];
          return request === undefined ? [] : [[index, settle(work, request)]];
        }),
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
