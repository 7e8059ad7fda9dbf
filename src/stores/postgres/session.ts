/** Connections of the pool, and transactions on them. */
import { createHash } from "node:crypto";
import type { Clock } from "../../internal/clock.ts";
import { sleep } from "../../internal/clock.ts";
import { type PgClient, type PgPool, types } from "./driver.ts";
import { ConnectionTimeout, isContention, isStatementLost, isUnanswered } from "./failures.ts";

/** Statements of one connection; names make them prepared, and null is for those of many shapes. */
export interface Session {
  readonly client: PgClient;
  /** Rows of `text`, a statement of this folder, in which `{}` stands for the schema. */
  rows<Row>(name: string | null, text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** A statement may be sent before the one ahead of it is answered. */
  readonly pipelines: boolean;
  /**
   * The server's clock as the transaction began, epoch milliseconds; null outside of one. To be awaited before anything is written:
   * where the connection pipelines, what is sent behind the beginning does not wait for it.
   */
  readonly begun: Promise<number | null>;
  /**
   * Sends the transaction's last statement, of which nothing is needed before the commit: where the connection pipelines, both are sent
   * at once. It must fail at the server where the commit must not happen; where it fails before it is sent, the commit is not sent
   * either.
   */
  conclude(send: () => Promise<unknown>): Promise<void>;
  /** Waits for what `conclude()` did not wait for. */
  concluded(): Promise<void>;
  /** The connection is not given back to the pool. */
  discard(why: unknown): void;
  /** Why the connection broke or was discarded; undefined while it is good. */
  readonly loss: Error | undefined;
  /** The same, until something is done in the transaction; then null. */
  readonly begunAt: number | null;
}

/**
 * How long a transaction may stand still, and the effects of one event may last together: less than what is left of a lease, by
 * default, when its handler returns.
 */
export const LIMIT_MS = 10_000;

/**
 * The server ends what nobody waits for any more: a process that is gone or stands still would keep its locks. A limit that the role
 * has of its own stands. For the rest of a transaction.
 */
export function limit(setting: "idle_in_transaction_session_timeout" | "statement_timeout"): string {
  return `select set_config('${setting}', '${LIMIT_MS}', true) where current_setting('${setting}') = '0'`;
}

/** The server's clock, epoch milliseconds. */
export const CLOCK = "(extract(epoch from clock_timestamp()) * 1000)::bigint";
export const NOW = `select ${CLOCK} as now`;

/** From here on a commit of the transaction is on disk when it is told, whatever the server's default. Its value is `on`. */
export const COMMITS_TO_DISK = "set_config('synchronous_commit', 'on', true)";

/**
 * Whatever the server's defaults, a commit here is on disk when it is told, and a statement sees what was committed while the one
 * before it waited for a lock. And plans are kept from a time when the tables were small: a scan that was cheap then would be
 * repeated when they have grown. They are kept in any case: to make them anew for each turn's arrays takes longer than a small turn.
 * A table without an index is scanned all the same, at a price so high that the server would compile the plan first, which takes longer
 * than any statement here.
 */
const BEGIN = `begin isolation level read committed; select (${NOW}), ${COMMITS_TO_DISK},
  set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true),
  (${limit("idle_in_transaction_session_timeout")})`;
/** A server that is gone without a word would be waited for until the system's own limits, which are minutes. */
export const ANSWER_MS = 30_000;
/** All connections of the pool may be taken, and a pool of the user's may wait for ever. */
export const CONNECT_MS = 5_000;

const FIRST_PAUSE_MS = 2;
const MOST_TRIES = 8;

export interface Access {
  readonly pool: PgPool;
  readonly clock: Clock;
  /** The schema, quoted. */
  readonly schema: string;
  readonly statements: Statements;
}

/** The statements of an open inbox, and whether they are prepared by name; shared by all its connections. */
export class Statements {
  readonly #schema: string;
  readonly #prepared = new Map<string, { readonly name: string; readonly text: string }>();
  readonly #onLost: () => void;
  #areNamed: boolean;

  /** @param onLost - called once, when `lost()` is called first */
  constructor(schema: string, areNamed: boolean, onLost: () => void = () => {}) {
    this.#schema = schema;
    this.#areNamed = areNamed;
    this.#onLost = onLost;
  }

  get areNamed(): boolean {
    return this.#areNamed;
  }

  /** A pooler does not keep them: from now on none has a name. */
  lost(): void {
    if (!this.#areNamed) return;
    this.#areNamed = false;
    this.#onLost();
  }

  /**
   * The statement as pg takes it. Its name holds a hash of its text, schema included: behind a pooler, other versions and other inboxes prepare
   * statements on the same connection, and a name alone would run theirs.
   */
  of(name: string | null, template: string): { readonly name?: string; readonly text: string } {
    if (name === null) return { text: template.replaceAll("{}", this.#schema) };
    let prepared = this.#prepared.get(name);
    if (prepared === undefined) {
      const text = template.replaceAll("{}", this.#schema);
      const hash = createHash("sha256").update(text).digest("hex").slice(0, 16);
      prepared = { name: `${name} ${hash}`, text };
      this.#prepared.set(name, prepared);
    }
    return this.#areNamed ? prepared : { text: prepared.text };
  }
}

/** The answers to two statements, which are sent at once where the connection pipelines. */
export async function both<First, Second>(
  session: Session,
  first: () => Promise<First>,
  second: () => Promise<Second>,
): Promise<[First, Second]> {
  const asked = first();
  if (!session.pipelines) await asked;
  return Promise.all([asked, second()]);
}

/** Runs `work` with a connection. One that broke is not given back. */
export function withSession<T>(access: Access, work: (session: Session) => Promise<T>): Promise<T> {
  return onConnection(access, work);
}

async function onConnection<T>(access: Access, work: (session: Connected) => Promise<T>): Promise<T> {
  const client = await connect(access);
  const session = new Connected(access, client);
  client.on("error", session.discard);
  try {
    return await work(session);
  } catch (error) {
    if (isUnanswered(error)) session.discard(error);
    throw error;
  } finally {
    client.removeListener("error", session.discard);
    giveBack(client, session.loss);
  }
}

/** A connection of the pool, within a bounded time; given back by `giveBack`. @throws ConnectionTimeout */
export function connect({ pool, clock }: Access): Promise<PgClient> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = clock.setTimeout(() => {
      isLate = true;
      reject(new ConnectionTimeout(CONNECT_MS));
    }, CONNECT_MS);
    timer.keepAlive();
    // A promise would be too late: the server's next words can be its last, in the same read from the socket.
    pool.connect((error, client) => {
      timer.cancel();
      if (client === undefined) return reject(error ?? new Error("The pool gave no connection."));
      if (isLate) return client.release();
      client.on("error", ignoreLoss);
      resolve(client);
    });
  });
}

export function giveBack(client: PgClient, broken?: Error): void {
  client.removeListener("error", ignoreLoss);
  client.release(broken);
}

/** A connection that breaks between two statements tells it as an event, which ends the process when nobody listens. */
function ignoreLoss(): void {}

/** Runs `work` in a transaction: all of it is durable when this resolves, or nothing happened. Contention is tried again. */
export async function inTransaction<T>(access: Access, work: (session: Session) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const { areNamed } = access.statements;
    try {
      return await onConnection(access, (session) => transact(session, work));
    } catch (error) {
      const isLost = areNamed && isStatementLost(error);
      if (!(isLost || isContention(error)) || attempt >= MOST_TRIES) throw error;
    }
    await sleep(access.clock, FIRST_PAUSE_MS * attempt);
  }
}

async function transact<T>(session: Connected, work: (session: Session) => Promise<T>): Promise<T> {
  const { client } = session;
  try {
    // It can fail when the transaction is open already.
    session.begin();
    if (!session.pipelines) await session.begun;
    const result = await work(session);
    await session.commit();
    return result;
  } catch (error) {
    // A server that did not answer will not do so now, and ends the transaction when the connection ends.
    if (isUnanswered(error) || session.loss !== undefined) session.discard(error);
    else await client.query({ text: "rollback", query_timeout: ANSWER_MS }).catch(session.discard);
    throw error;
  }
}

class Connected implements Session {
  readonly client: PgClient;
  readonly pipelines: boolean;
  #begun: Promise<number | null> = Promise.resolve(null);
  #last: Promise<unknown> = Promise.resolve();
  /** Statements so far. */
  #sent = 0;
  readonly #access: Access;
  #loss: Error | undefined;
  #begunAt: number | null = null;
  /** Something was done since it began. */
  #isUsed = false;
  #isBegun = false;

  constructor(access: Access, client: PgClient) {
    this.#access = access;
    this.client = client;
    this.pipelines = client.pipeline === true;
  }

  get begun(): Promise<number | null> {
    return this.#begun;
  }

  get loss(): Error | undefined {
    return this.#loss;
  }

  get begunAt(): number | null {
    return this.#isUsed ? null : this.#begunAt;
  }

  /** Bound: it hears the connection's errors too. */
  readonly discard = (why?: unknown): void => {
    this.#loss ??= why instanceof Error ? why : new Error("The connection ended.");
  };

  begin(): void {
    this.#isBegun = true;
    this.#isUsed = false;
    this.#begun = this.#begin();
    // Who does not wait for it hears of it from the next statement too.
    this.#begun.catch(() => {});
  }

  async conclude(send: () => Promise<unknown>): Promise<void> {
    const sentBefore = this.#sent;
    this.#last = send();
    // One that was not sent has failed already, since nothing is waited for before.
    if (!this.pipelines || this.#sent === sentBefore) await this.#last;
    else this.#last.catch(() => {});
  }

  async concluded(): Promise<void> {
    await this.#last;
  }

  /** Where the last statement fails, the commit behind it ends the transaction without it. */
  async commit(): Promise<void> {
    await this.#begun;
    const committed = this.client.query({ text: "commit", query_timeout: ANSWER_MS });
    const ends = await Promise.allSettled([this.#last, committed]);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async #begin(): Promise<number | null> {
    const answer: unknown = await this.client.query({ text: BEGIN, types, query_timeout: ANSWER_MS });
    // pg answers a text of several statements with a result for each.
    const results = answer as readonly { readonly rows: readonly { readonly now?: number }[] }[];
    this.#begunAt = results.at(-1)?.rows[0]?.now ?? null;
    return this.#begunAt;
  }

  /** Bound: it is handed on by itself. */
  readonly rows = async <Row>(
    name: string | null,
    template: string,
    values: readonly unknown[] = [],
  ): Promise<readonly Row[]> => {
    this.#isUsed = true;
    const statement = this.#access.statements.of(name, template);
    const asked = this.client.query({ ...statement, values, types, query_timeout: ANSWER_MS });
    this.#sent += 1;
    try {
      return (await asked).rows as readonly Row[];
    } catch (error) {
      if (statement.name === undefined || !isStatementLost(error)) throw error;
      this.#access.statements.lost();
      // It was not run. A transaction has failed with it, and is run again from its beginning.
      if (this.#isBegun) throw error;
      return this.rows<Row>(name, template, values);
    }
  };
}
