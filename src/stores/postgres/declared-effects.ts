/**
 * Declared effects: up to 16 events in one write to a connection, each in a transaction of its own, without waiting for answers. Whatever
 * fails here fails alone, counts as no attempt, and is run again by itself, where its error is judged.
 */
import type { EffectStatement, SettleResult } from "../../inbox/store.ts";
import { sleep } from "../../internal/clock.ts";
import { type Completion, type Executables, endOf, isCommon } from "./end-lease.ts";
import { isContention, isStatementLost, isUnanswered, leadsAstray } from "./failures.ts";
import type { Slots } from "./instances.ts";
import type { PgInbox } from "./open.ts";
import { ANSWER_MS, BEGIN, nameFor, type PgQuery, type PgSession, types, withSession } from "./session.ts";

const MOST_EVENTS = 16;
const MOST_WRITES = 4;
/** While one waits for a lock or takes longer, the events behind it in its write wait too. Milliseconds. */
const LOCK_MS = 50;
const STATEMENT_MS = 1_000;
/** How often it is sent when another transaction holds its rows. Longer pauses each time. */
const MOST_TRIES = 5;
const PAUSE_MS = 5;
/** Texts that stay prepared. More would fill the server's memory, as those with their values in them do. */
const MOST_TEXTS = 200;

/** A completion whose effects are all declared. */
export interface Declared extends Completion {
  readonly effects: readonly EffectStatement[];
}

export function isDeclared(request: Completion): request is Declared {
  return isCommon(request) && request.effects.every((effect) => typeof effect !== "function");
}

/** The result. Otherwise it has to be run by itself: `unanswered` may have been committed, `apart` was not. */
export type DeclaredEnd = SettleResult | "unanswered" | "apart";
type End = DeclaredEnd | "contended";

interface Waiting {
  /** What its transaction sends, with the row of the instance's counters. */
  readonly queries: (slot: number) => readonly PgQuery[];
  readonly resolve: (end: End) => void;
}

export class DeclaredWrites {
  readonly #inbox: PgInbox;
  readonly #slots: Slots;
  readonly #executables: Executables;
  readonly #waiting: Waiting[] = [];
  readonly #names = new Map<string, string>();
  #writes = 0;

  constructor(inbox: PgInbox, slots: Slots, executables: Executables) {
    this.#inbox = inbox;
    this.#slots = slots;
    this.#executables = executables;
  }

  async settle(request: Declared): Promise<DeclaredEnd> {
    for (let attempt = 1; ; attempt++) {
      const end = await this.#try(request);
      if (end !== "contended") return end;
      if (attempt === MOST_TRIES) return "apart";
      await sleep(this.#inbox.context.clock, PAUSE_MS * attempt);
    }
  }

  #try(request: Declared): Promise<End> {
    const effects = request.effects.map((effect) => this.#queryOf(effect)).filter((query) => query !== null);
    if (!this.#executables.areKept || effects.length < request.effects.length) return Promise.resolve("apart");
    return new Promise((resolve) => {
      this.#waiting.push({ queries: (slot) => this.#queries(request, effects, slot), resolve });
      // Those of the same batch come in the same round.
      if (this.#waiting.length === 1) queueMicrotask(() => this.#begin());
    });
  }

  #begin(): void {
    while (this.#waiting.length > 0 && this.#writes < MOST_WRITES) {
      const share = Math.ceil(this.#waiting.length / (MOST_WRITES - this.#writes));
      const events = this.#waiting.splice(0, Math.min(share, MOST_EVENTS));
      this.#writes++;
      void this.#write(events)
        .catch(() => {})
        .finally(() => {
          for (const { resolve } of events) resolve("apart");
          this.#writes--;
          this.#begin();
        });
    }
  }

  async #write(events: readonly Waiting[]): Promise<void> {
    await this.#slots.use((slot) =>
      withSession(this.#inbox.access, async (session) => {
        await this.#executables.prepareOurs(session.client);
        const together = session.together(() =>
          Promise.all(events.map((event) => this.#judge(session, event, this.#sendAll(session, event.queries, slot)))),
        );
        if (together !== null) return void (await together);
        for (const event of events) await this.#judge(session, event, this.#sendEach(session, event.queries, slot));
      }),
    );
  }

  /** The commit of a transaction in which one has failed rolls it back. */
  #sendAll({ client }: PgSession, queries: Waiting["queries"], slot: number): Promise<readonly Sent[]> {
    return Promise.allSettled(queries(slot).map((query) => client.query(query)));
  }

  async #sendEach({ client }: PgSession, queries: Waiting["queries"], slot: number): Promise<readonly Sent[]> {
    const ends: Sent[] = [];
    for (const query of queries(slot)) {
      const [end] = await Promise.allSettled([client.query(query)]);
      ends.push(end);
      if (end.status === "fulfilled") continue;
      if (!isUnanswered(end.reason)) await client.query({ text: "rollback", query_timeout: ANSWER_MS });
      break;
    }
    return ends;
  }

  async #judge(session: PgSession, { resolve }: Waiting, sent: Promise<readonly Sent[]>): Promise<void> {
    const since = this.#inbox.latestWrite;
    const ends = await sent;
    const failed = ends.find((end) => end.status === "rejected");
    if (failed === undefined) {
      resolve({ status: "settled" });
      const end = ends.at(-2);
      return this.#inbox.endedLease(endOf(end?.status === "fulfilled" ? end.value : []), since);
    }
    const isCutOff = ends.some((end) => end.status === "rejected" && isUnanswered(end.reason));
    if (isCutOff || leadsAstray(failed.reason)) session.discard(failed.reason);
    else if (isStatementLost(failed.reason)) this.#executables.failed(session.client, failed.reason);
    resolve(isCutOff ? "unanswered" : isContention(failed.reason) ? "contended" : "apart");
  }

  #queries({ lease }: Declared, effects: readonly PgQuery[], slot: number): readonly PgQuery[] {
    const settings = this.#executables.execute("settings", `${LOCK_MS}`, `${STATEMENT_MS}`);
    const end = this.#executables.endLease(lease, this.#inbox.holder(slot), null);
    return [{ text: `${BEGIN}; ${settings}` }, ...effects, { text: end, types }, { text: "commit" }].map((query) => ({
      ...query,
      query_timeout: ANSWER_MS,
    }));
  }

  /** By name, so that the server plans it once for each connection. Null if pg could not send it. */
  #queryOf({ text, values }: EffectStatement): PgQuery | null {
    const written = values.map(asWritten);
    if (written.includes(UNWRITABLE)) return null;
    if (!this.#names.has(text) && this.#names.size < MOST_TEXTS)
      this.#names.set(text, nameFor("oncehook effect", text));
    const name = this.#names.get(text);
    // A query without a name must have a value: otherwise pg would send it as a text, which may have several statements.
    if (name === undefined) return written.length > 0 ? { text, values: written } : null;
    return { name, text, values: written };
  }
}

type Sent = PromiseSettledResult<unknown>;

const UNWRITABLE = Symbol("a value that pg may not be able to write");

/**
 * A value as pg would write it as far as that can fail, because pg sends no query for a value that it cannot write. What follows in the
 * transaction would be committed without it.
 */
function asWritten(value: unknown): unknown {
  if (typeof value === "function" || typeof value === "symbol") return UNWRITABLE;
  if (typeof value !== "object" || value === null || value instanceof Date || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) {
    const written = value.map(asWritten);
    return written.includes(UNWRITABLE) ? UNWRITABLE : written;
  }
  try {
    return "toPostgres" in value ? UNWRITABLE : (JSON.stringify(value) ?? UNWRITABLE);
  } catch {
    return UNWRITABLE;
  }
}
