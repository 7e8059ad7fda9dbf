/** The few methods of pg that oncehook uses, connections of its pool, and transactions on them. */
import { createHash } from "node:crypto";
import { SetupError } from "../../errors.ts";
import { type Clock, sleep } from "../../internal/clock.ts";
import { parseBytea } from "./encoding.ts";
import { ConnectionTimeout, isContention, isStatementLost, isUnanswered } from "./failures.ts";

// The few methods of pg that oncehook uses, declared structurally, and its lazy loading.

/** What a query of pg takes: a name makes it a prepared statement of its connection. */
export interface PgQuery {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly types?: { getTypeParser(oid: number, format?: string): (value: string) => unknown };
  /** How long an answer is waited for, milliseconds. */
  readonly query_timeout?: number;
}

export interface PgResult<Row = Record<string, unknown>> {
  readonly rows: readonly Row[];
  readonly rowCount: number | null;
}

/**
 * A connection; what an effect registered with `ctx.commit` writes with: `query("insert …", [values])`. `Row` is taken on trust, as
 * pg takes it.
 */
export interface PgClient {
  query<Row extends object = Record<string, unknown>>(query: PgQuery): Promise<PgResult<Row>>;
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<PgResult<Row>>;
  release(destroy?: boolean | Error): void;
  /** One signature, not one for each event: pg's own type, which is generic, fits no other. */
  on(event: "notification" | "error" | "end", listener: (...values: never[]) => void): unknown;
  removeListener(event: "error", listener: (error?: Error) => void): unknown;
  /** The server's process, as the connection was told; behind a pooler another number. */
  readonly processID?: number | null;
  /** It sends a query before the one ahead of it is answered; since pg 8.23, as the pool's option says. */
  readonly pipeline?: boolean;
}

/**
 * A pool of pg: `new Pool({ connectionString })`.
 *
 * @typeParam Client - its connections, as its own types have them: pg's `PoolClient`
 */
export interface PgPool<Client extends PgClient = PgClient> {
  connect(callback: (error: Error | undefined, client: Client | undefined) => void): void;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  readonly options?: PgPoolOptions;
}

/** Of a pool that was made without `max`: pg's own default. */
export const CONNECTIONS = 10;

/** The turns that may run at once, each on a connection of its own where the pool is ours. */
export const TURN_CONNECTIONS = 2;

/** What a pool was made with, as far as it matters here; pg declares each as `| undefined`. */
export interface PgPoolOptions {
  readonly max?: number | undefined;
  readonly connectionString?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: number | string | undefined;
  readonly database?: string | undefined;
  readonly binary?: boolean | undefined;
}

type PgPoolConstructor = new (options: {
  readonly connectionString: string;
  readonly max: number;
  readonly connectionTimeoutMillis: number;
  readonly keepAlive: boolean;
  readonly application_name: string;
  /** Unknown to pg before 8.23, and then of no effect. */
  readonly pipeline?: boolean;
}) => PgPool;

/** Loads pg. */
export async function loadPool(): Promise<PgPoolConstructor> {
  try {
    const { default: pg } = await import("pg");
    // Declared structurally, so that its types are not needed by those who use another store.
    return pg.Pool as unknown as PgPoolConstructor;
  } catch (cause) {
    throw new SetupError("missing_peer", 'Postgres needs the package pg: run "npm install pg".', { cause });
  }
}

const INT8 = 20;
const asIs = (value: string): unknown => value;

/** Numbers of 64 bits come as text by default; ours are times and ids, which a number holds exactly. */
const parsers = new Map<number, (value: string) => unknown>([
  [INT8, Number],
  [16, (value) => value === "t"],
  [17, parseBytea],
  [21, Number],
  [23, Number],
  [114, (value) => JSON.parse(value)],
  [3802, (value) => JSON.parse(value)],
]);

/** The types of our own queries, whatever the application has set for its own. */
export const types: NonNullable<PgQuery["types"]> = { getTypeParser: (oid) => parsers.get(oid) ?? asIs };

// Connections of the pool, and transactions on them.

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
