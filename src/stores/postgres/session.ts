/** The driver pg as oncehook uses it: its types, its connections, and transactions on them. */
import { createHash } from "node:crypto";
import { SetupError } from "../../errors.ts";
import { type Clock, sleep } from "../../internal/clock.ts";
import { parseBytea } from "./encoding.ts";
import {
  ConnectionTimeout,
  isContention,
  isStatementLost,
  isUnanswered,
  leadsAstray,
  StandbyFound,
} from "./failures.ts";

/** A query of pg, with the parts that oncehook uses, declared structurally. A name makes it a prepared statement of its connection. */
export interface PgQuery {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly types?: { getTypeParser(oid: number, format?: string): (value: string) => unknown };
  /** How long to wait for the answer, milliseconds. */
  readonly query_timeout?: number;
}

export interface PgResult<Row = Record<string, unknown>> {
  readonly rows: readonly Row[];
  readonly rowCount: number | null;
}

/**
 * A connection, as an effect registered with `ctx.commit` receives it: `query("insert …", [values])`. `Row` is not checked, as
 * in pg.
 */
export interface PgClient {
  query<Row extends object = Record<string, unknown>>(query: PgQuery): Promise<PgResult<Row>>;
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<PgResult<Row>>;
  release(destroy?: boolean | Error): void;
  /** One signature and not one for each event, because pg's own generic type is assignable to no other. */
  on(event: "notification" | "error" | "end", listener: (...values: never[]) => void): unknown;
  removeListener(event: "error", listener: (error?: Error) => void): unknown;
  /** The number of the server's process; behind a pooler a different number. */
  readonly processID?: number | null;
  /** True if it sends a query before the previous one is answered: an option of the pool since pg 8.23, undefined before. */
  pipeline?: boolean;
}

/**
 * A pool of pg: `new Pool({ connectionString })`.
 *
 * @typeParam Client - its connections, as its own types declare them: pg's `PoolClient`
 */
export interface PgPool<Client extends PgClient = PgClient> {
  connect(callback: (error: Error | undefined, client: Client | undefined) => void): void;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  readonly options?: PgPoolOptions;
}

/** The connections of a pool without `max`: pg's own default. */
export const CONNECTIONS = 10;

/** The batches that may run at once, each on a connection of its own if the pool is ours. */
export const TURN_CONNECTIONS = 2;

/** The options of a pool that matter here; pg declares each as `| undefined`. */
export interface PgPoolOptions {
  /** The most connections. */
  readonly max?: number | undefined;
  /** The server and the database, as a URL. */
  readonly connectionString?: string | undefined;
  /** The server. */
  readonly host?: string | undefined;
  /** The TCP port. */
  readonly port?: number | string | undefined;
  /** The name of the database. */
  readonly database?: string | undefined;
  /** The results are binary: oncehook refuses such a pool. */
  readonly binary?: boolean | undefined;
}

type PgPoolConstructor = new (options: {
  readonly connectionString: string;
  readonly max: number;
  readonly connectionTimeoutMillis: number;
  readonly keepAlive: boolean;
  readonly application_name: string;
  /** Ignored by pg before 8.23. */
  readonly pipeline?: boolean;
}) => PgPool;

/** Loads pg. */
export async function loadPool(): Promise<PgPoolConstructor> {
  try {
    const { default: pg } = await import("pg");
    // Declared structurally, so that users of another store do not need pg's types.
    return pg.Pool as unknown as PgPoolConstructor;
  } catch (cause) {
    throw new SetupError("missing_peer", 'Postgres needs the package pg: run "npm install pg".', { cause });
  }
}

const INT8 = 20;
const asIs = (value: string): unknown => value;

/** pg returns 64-bit numbers as text by default; ours are times and ids, which a JavaScript number represents exactly. */
const parsers = new Map<number, (value: string) => unknown>([
  [INT8, Number],
  [16, (value) => value === "t"],
  [17, parseBytea],
  [21, Number],
  [23, Number],
  [114, (value) => JSON.parse(value)],
  [3802, (value) => JSON.parse(value)],
]);

/** Parsers for our own queries, independent of those that the application has set. */
export const types: NonNullable<PgQuery["types"]> = { getTypeParser: (oid) => parsers.get(oid) ?? asIs };

/** The row of the last statement that begins a transaction. */
export interface Opening {
  /** The server's clock, epoch milliseconds. */
  readonly now?: number;
}

/** A connection for statements of this folder. A name makes a statement prepared; null is for statements of many shapes. */
export interface PgSession {
  readonly client: PgClient;
  /**
   * Runs `text`, in which `{}` stands for the schema, and returns its rows. Outside a transaction it runs again after a conflict, which is
   * an ordinary event where the default isolation level is stricter than ours.
   */
  rows<Row>(name: string | null, text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** A statement may be sent before the previous one is answered. */
  readonly pipelines: boolean;
  /**
   * The server's clock as the transaction began, epoch milliseconds; null outside a transaction. Await it before writing anything: if the
   * connection pipelines, later statements do not wait for it.
   */
  readonly begun: Promise<number | null>;
  /** The same until the first statement of the transaction; then null. */
  readonly begunAt: number | null;
  /** What the last statement of the transaction's beginning returned; null outside a transaction. */
  readonly opening: Promise<Opening | null>;
  /**
   * Runs `work`, which sends statements without waiting for the answers in between. It must wait for all of them. pg cannot read cursors
   * and streams on a connection that pipelines, so one that can does it only meanwhile.
   *
   * @returns null, without calling `work`, if the connection cannot pipeline
   */
  together<T>(work: () => Promise<T>): Promise<T> | null;
  /**
   * Sends the transaction's last statement, whose result is not needed before the commit: if the connection pipelines, both are sent
   * at once. The statement must fail at the server whenever the commit must not happen. If it fails before it is sent, the commit is not
   * sent either.
   */
  conclude(send: () => Promise<unknown>): Promise<void>;
  /** Waits for what `conclude()` did not wait for. */
  concluded(): Promise<void>;
  /** Sends a text that ends with the commit of the transaction, and returns its results. */
  commitBy(text: string): Promise<unknown>;
  /** Closes the connection instead of returning it to the pool. */
  discard(why: unknown): void;
  /** Why the connection broke or was discarded; undefined while it is good. */
  readonly loss: Error | undefined;
}

/**
 * How long a transaction may idle, and how long all effects of one event may take: by default less than the rest of a lease when its
 * handler returns.
 */
export const LIMIT_MS = 10_000;

/**
 * Lets the server end a transaction of a process that has died or hangs, which would keep its locks. A limit that the role already has
 * stays. Lasts for the rest of a transaction.
 */
export function limit(setting: "idle_in_transaction_session_timeout" | "statement_timeout"): string {
  return `select set_config('${setting}', '${LIMIT_MS}', true) where current_setting('${setting}') = '0'`;
}

/** The server's clock, epoch milliseconds. */
export const CLOCK = "(extract(epoch from clock_timestamp()) * 1000)::bigint";
export const NOW = `select ${CLOCK} as now`;

/** A statement sees what was committed while the previous one waited for a lock. */
export const BEGIN = "begin isolation level read committed";
const setLocally = ([setting, value]: readonly [string, string]) => `set_config('${setting}', '${value}', true)`;

/**
 * What our own statements rely on, whatever the server's defaults. A commit waits for the disk. Plans are always generic, because planning
 * for each batch's arrays takes longer than a small batch. Such a plan may date from a time when the tables were small, so sequential scans
 * are off. A table without an index is still scanned, with a cost so high that the server would first compile the plan, so JIT is off.
 */
export const OUR_SETTINGS = {
  synchronous_commit: "on",
  enable_seqscan: "off",
  plan_cache_mode: "force_generic_plan",
  jit: "off",
} as const;
/** Makes them, for the rest of the transaction. */
export const SET_OURS = Object.entries(OUR_SETTINGS).map(setLocally).join(", ");
/** Makes the first of them, in a statement that is its own transaction. Its value is `on`. */
export const COMMITS_TO_DISK = setLocally(["synchronous_commit", OUR_SETTINGS.synchronous_commit]);
const OPEN = `${BEGIN}; select (${NOW}), ${SET_OURS}, (${limit("idle_in_transaction_session_timeout")})`;
/** How long to wait for an answer. Without it, a server that disappeared silently is noticed only after the system's limit of minutes. */
export const ANSWER_MS = 30_000;
/** How long to wait for a connection. All may be in use, and a user's pool may wait forever. */
export const CONNECT_MS = 5_000;

const FIRST_PAUSE_MS = 2;
const MOST_TRIES = 8;

export interface PgAccess {
  readonly pool: PgPool;
  readonly clock: Clock;
  /** The schema, quoted. */
  readonly schema: string;
  readonly statements: PgStatements;
}

/**
 * A name for a prepared statement. It contains a hash of the text, including the schema: behind a pooler, other versions and other inboxes
 * prepare statements on the same connection, and without the hash a name could run theirs.
 */
export function nameFor(what: string, text: string): string {
  return `${what} ${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
}

/** The statements of an open inbox, and whether they are prepared by name; shared by all its connections. */
export class PgStatements {
  readonly #schema: string;
  readonly #named = new Map<string, { readonly name: string; readonly text: string }>();
  readonly #onLost: () => void;
  #areNamed: boolean;

  /** @param onLost - called at the first call of `lost()` */
  constructor(schema: string, areNamed: boolean, onLost: () => void = () => {}) {
    this.#schema = schema;
    this.#areNamed = areNamed;
    this.#onLost = onLost;
  }

  get areNamed(): boolean {
    return this.#areNamed;
  }

  /** A pooler does not keep prepared statements: send all without names from now on. */
  lost(): void {
    if (!this.#areNamed) return;
    this.#areNamed = false;
    this.#onLost();
  }

  /** The statement in pg's form. */
  of(name: string | null, template: string): { readonly name?: string; readonly text: string } {
    if (name === null) return { text: template.replaceAll("{}", this.#schema) };
    const statement = this.named(name, template);
    return this.#areNamed ? statement : { text: statement.text };
  }

  /** The statement with its full name, whether they are prepared by name or not. */
  named(name: string, template: string): { readonly name: string; readonly text: string } {
    let statement = this.#named.get(name);
    if (statement === undefined) {
      const text = template.replaceAll("{}", this.#schema);
      statement = { name: nameFor(name, text), text };
      this.#named.set(name, statement);
    }
    return statement;
  }
}

/** Runs two statements and returns both answers. If the connection pipelines, both are sent at once. */
export async function both<First, Second>(
  session: PgSession,
  first: () => Promise<First>,
  second: () => Promise<Second>,
): Promise<[First, Second]> {
  const asked = first();
  if (!session.pipelines) await asked;
  return Promise.all([asked, second()]);
}

/**
 * Runs `work` with a connection. One that is broken, or that leads to a server without writes, does not return to the pool: under steady
 * traffic it would be used again and again.
 */
export function withSession<T>(access: PgAccess, work: (session: PgSession) => Promise<T>): Promise<T> {
  return onConnection(access, work);
}

async function onConnection<T>(access: PgAccess, work: (session: Connected) => Promise<T>): Promise<T> {
  const client = await takeClient(access);
  const session = new Connected(access, client);
  client.on("error", session.discard);
  try {
    return await work(session);
  } catch (error) {
    if (isUnanswered(error) || leadsAstray(error)) session.discard(error);
    throw error;
  } finally {
    client.removeListener("error", session.discard);
    giveBack(client, session.loss);
  }
}

/** Takes a connection of the pool, within a time limit. Return it with `giveBack()`. @throws ConnectionTimeout, StandbyFound */
export function takeClient({ pool, clock }: PgAccess): Promise<PgClient> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = clock.setTimeout(() => {
      isLate = true;
      reject(new ConnectionTimeout(CONNECT_MS));
    }, CONNECT_MS);
    timer.keepAlive();
    // A promise would be too late: the server's next message, in the same read from the socket, can be that it ends the connection.
    pool.connect((error, client) => {
      timer.cancel();
      if (client === undefined) return reject(error ?? new Error("The pool gave no connection."));
      if (isLate) return client.release();
      client.on("error", ignoreLoss);
      resolve(onPrimary.has(client) ? client : checked(client));
    });
  });
}

/** A server that becomes a standby ends its connections first, so each is asked once. */
const onPrimary = new WeakSet<PgClient>();
const IS_STANDBY = { text: "select pg_is_in_recovery() as standby", types, query_timeout: CONNECT_MS };

async function checked(client: PgClient): Promise<PgClient> {
  try {
    const { rows } = await client.query<{ readonly standby: boolean }>(IS_STANDBY);
    if (rows[0]?.standby === true) throw new StandbyFound();
    onPrimary.add(client);
    return client;
  } catch (error) {
    giveBack(client, error instanceof Error ? error : new Error("A new connection could not be used."));
    throw error;
  }
}

export function giveBack(client: PgClient, broken?: Error): void {
  client.removeListener("error", ignoreLoss);
  client.release(broken);
}

/** A connection that breaks between two statements emits `error`, which ends the process if there is no listener. */
function ignoreLoss(): void {}

interface Corked {
  cork?(): void;
  uncork?(): void;
}

/** Called before the transaction, with its connection. Returns the text that begins it. */
export type Beginning = (client: PgClient) => Promise<string>;

/**
 * Runs `work` in a transaction: when this resolves, all of it is durable; otherwise nothing happened. Retries after conflicts.
 *
 * @param open - `BEGIN` and a select whose row has the clock as `now`. Default: also the settings that our statements need
 */
export async function withTransaction<T>(
  access: PgAccess,
  work: (session: PgSession) => Promise<T>,
  open: string | Beginning = OPEN,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const { areNamed } = access.statements;
    try {
      return await onConnection(access, (session) => transact(session, work, open));
    } catch (error) {
      const isLost = areNamed && isStatementLost(error);
      if (!(isLost || isContention(error)) || attempt >= MOST_TRIES) throw error;
    }
    await sleep(access.clock, FIRST_PAUSE_MS * attempt);
  }
}

async function transact<T>(
  session: Connected,
  work: (session: PgSession) => Promise<T>,
  open: string | Beginning,
): Promise<T> {
  const { client } = session;
  const text = typeof open === "string" ? open : await open(client);
  try {
    // May fail although the transaction is already open.
    session.begin(text);
    if (!session.pipelines) await session.begun;
    const result = await work(session);
    await session.commit();
    return result;
  } catch (error) {
    // A server that did not answer will not answer a rollback, and ends the transaction when the connection ends.
    if (isUnanswered(error) || session.loss !== undefined) session.discard(error);
    else await client.query({ text: "rollback", query_timeout: ANSWER_MS }).catch(session.discard);
    throw error;
  }
}

class Connected implements PgSession {
  readonly client: PgClient;
  readonly pipelines: boolean;
  #opening: Promise<Opening | null> = Promise.resolve(null);
  #begun: Promise<number | null> = Promise.resolve(null);
  #last: Promise<unknown> = Promise.resolve();
  /** The number of statements sent. */
  #sent = 0;
  readonly #access: PgAccess;
  #loss: Error | undefined;
  #begunAt: number | null = null;
  /** A statement was sent since the transaction began. */
  #isUsed = false;
  #isBegun = false;
  #isCommitted = false;

  constructor(access: PgAccess, client: PgClient) {
    this.#access = access;
    this.client = client;
    this.pipelines = client.pipeline === true;
  }

  get begun(): Promise<number | null> {
    return this.#begun;
  }

  get opening(): Promise<Opening | null> {
    return this.#opening;
  }

  get loss(): Error | undefined {
    return this.#loss;
  }

  get begunAt(): number | null {
    return this.#isUsed ? null : this.#begunAt;
  }

  /** Bound, because it is also the listener for the connection's errors. */
  readonly discard = (why?: unknown): void => {
    this.#loss ??= why instanceof Error ? why : new Error("The connection ended.");
  };

  begin(open: string): void {
    this.#isBegun = true;
    this.#isUsed = false;
    this.#opening = this.#open(open);
    this.#begun = this.#opening.then((opening) => {
      this.#begunAt = opening?.now ?? null;
      return this.#begunAt;
    });
    // If it fails, the next statement fails too.
    this.#begun.catch(() => {});
  }

  together<T>(work: () => Promise<T>): Promise<T> | null {
    const { client } = this;
    if (client.pipeline === undefined) return null;
    const wasPipeline = client.pipeline;
    const { stream } = (client as { readonly connection?: { readonly stream?: Corked } }).connection ?? {};
    client.pipeline = true;
    // One write for all that is sent before the first answer.
    stream?.cork?.();
    const done = work().finally(() => {
      client.pipeline = wasPipeline;
    });
    stream?.uncork?.();
    return done;
  }

  async conclude(send: () => Promise<unknown>): Promise<void> {
    const sentBefore = this.#sent;
    this.#last = send();
    // A statement that was not sent has already failed, because nothing is awaited before sending.
    if (!this.pipelines || this.#sent === sentBefore) await this.#last;
    else this.#last.catch(() => {});
  }

  async concluded(): Promise<void> {
    await this.#last;
  }

  async commitBy(text: string): Promise<unknown> {
    const results = await this.client.query({ text, types, query_timeout: ANSWER_MS });
    this.#isCommitted = true;
    return results;
  }

  /** If the last statement fails, the commit after it ends the transaction without its changes. */
  async commit(): Promise<void> {
    if (this.#isCommitted) return;
    await this.#begun;
    const committed = this.client.query({ text: "commit", query_timeout: ANSWER_MS });
    const ends = await Promise.allSettled([this.#last, committed]);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async #open(text: string): Promise<Opening | null> {
    const answer: unknown = await this.client.query({ text, types, query_timeout: ANSWER_MS });
    // pg returns one result for each statement of a text.
    const results = answer as readonly { readonly rows: readonly Opening[] }[];
    return results.at(-1)?.rows[0] ?? null;
  }

  /** Bound, because it is passed around without the session. */
  readonly rows = async <Row>(
    name: string | null,
    template: string,
    values: readonly unknown[] = [],
  ): Promise<readonly Row[]> => {
    this.#isUsed = true;
    const { statements, clock } = this.#access;
    for (let attempt = 1; ; attempt++) {
      const statement = statements.of(name, template);
      const asked = this.client.query({ ...statement, values, types, query_timeout: ANSWER_MS });
      this.#sent += 1;
      try {
        return (await asked).rows as readonly Row[];
      } catch (error) {
        const isLost = statement.name !== undefined && isStatementLost(error);
        if (isLost) statements.lost();
        // Nothing of the statement was written. In a transaction everything must be run again.
        if (this.#isBegun || !(isLost || isContention(error)) || attempt >= MOST_TRIES) throw error;
      }
      await sleep(clock, FIRST_PAUSE_MS * attempt);
    }
  };
}
