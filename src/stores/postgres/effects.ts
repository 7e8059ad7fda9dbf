/** Completions with effects, each in a transaction of its own: what the handler writes and the end of its lease are one. */
import { endLease, heldEvent } from "../../inbox/lanes/settling.ts";
import type { LeaseRef, Settle, SettleResult, Turn } from "../../inbox/store.ts";
import type { PgClient } from "./driver.ts";
import { isContention } from "./failures.ts";
import { lendConnection } from "./lending.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { inTransaction, type Session } from "./session.ts";
import type { Answered } from "./turn.ts";
import { openWorkspace } from "./workspace.ts";

type Completion = Extract<Settle<PgClient>, { kind: "complete" }>;

/** At once, so that their commits share the server's syncs. A pool of one takes them in turn. */
const AT_ONCE = 8;

/** An effect threw: its transaction is rolled back. */
class EffectFailed extends Error {}

export class EffectSettles {
  readonly #inbox: OpenInbox;
  /** Committed here while the turn they belong to failed: the core asks again, and must not be told that they are lost. */
  readonly #committed = new Map<string, SettleResult>();

  constructor(inbox: OpenInbox) {
    this.#inbox = inbox;
  }

  /** Settles what has effects. The results are kept until the turn has passed. */
  async run(turn: Turn<PgClient>): Promise<Answered> {
    const answered = new Map<number, SettleResult>();
    const open = turn.settles.flatMap((request, index) =>
      request.kind === "complete" && request.effects.length > 0 ? [{ request, index }] : [],
    );
    const next = open[Symbol.iterator]();
    const work = async () => {
      for (const { request, index } of next) answered.set(index, await this.#settle(request));
    };
    // All of them, before a failure is told: asked again while one is still under way, it would look like lost.
    const ended = await Promise.allSettled(Array.from({ length: Math.min(AT_ONCE, open.length) }, work));
    for (const end of ended) if (end.status === "rejected") throw end.reason;
    return answered;
  }

  /** The turn has passed: nobody will ask for these again. */
  passed(turn: Turn<PgClient>): void {
    if (this.#committed.size === 0) return;
    for (const { lease } of turn.settles) this.#committed.delete(keyOf(lease));
  }

  async #settle(request: Completion): Promise<SettleResult> {
    const key = keyOf(request.lease);
    const known = this.#committed.get(key);
    if (known !== undefined) return known;
    try {
      const result = await inTransaction(this.#inbox.access, (session) => complete(this.#inbox, session, request));
      if (result.status === "settled") this.#committed.set(key, result);
      return result;
    } catch (error) {
      if (error instanceof EffectFailed) return { status: "effect_failed", error: error.cause };
      throw error;
    }
  }
}

/** Guard first: a lost lease runs no effect. */
async function complete(inbox: OpenInbox, session: Session, request: Completion): Promise<SettleResult> {
  const work = await openWorkspace(inbox, session);
  await work.lock([request.lease.lane], []);
  const event = heldEvent(work.moment, work.byId.get(request.lease.lane), request.lease);
  if (event === null) return { status: "lost" };
  try {
    await lendConnection(session.client, request.effects);
  } catch (cause) {
    throw isContention(cause) ? cause : new EffectFailed("An effect threw.", { cause });
  }
  endLease(work.moment, event, request);
  await work.flush();
  return { status: "settled" };
}

function keyOf({ lane, epoch, event }: LeaseRef): string {
  return `${lane} ${epoch} ${event}`;
}
