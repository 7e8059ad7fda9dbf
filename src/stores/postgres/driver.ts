/** The few methods of pg that oncehook uses, declared structurally, and its lazy loading. */
import { SetupError } from "../../errors.ts";
import { bytesOf } from "./bytea.ts";

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

export type PgPoolConstructor = new (options: {
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
  [17, bytesOf],
  [21, Number],
  [23, Number],
  [114, (value) => JSON.parse(value)],
  [3802, (value) => JSON.parse(value)],
]);

/** The types of our own queries, whatever the application has set for its own. */
export const types: NonNullable<PgQuery["types"]> = { getTypeParser: (oid) => parsers.get(oid) ?? asIs };
