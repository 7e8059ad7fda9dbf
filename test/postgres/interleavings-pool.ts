/** A pool whose connections stop before a statement that the test names, so that another transaction comes in between. */
import pg from "pg";
import type { PgClient, PgPool, PgQuery } from "../../src/stores/postgres.ts";

export interface Hold {
  /** The statement is about to run, on the connection of this process of the server's: everything before it has. */
  readonly reached: Promise<number>;
  release(): void;
}

export interface HeldAnswer {
  /** The statement has run. */
  readonly reached: Promise<number>;
  /** Its answer comes, or is an error instead. */
  release(instead?: Error): void;
}

interface Gate {
  readonly statement: string;
  readonly holds: "statement" | "answer";
  reach(serverProcess: number): void;
  readonly opened: Promise<Error | undefined>;
}

export class HeldPool implements PgPool {
  readonly #pool: pg.Pool;
  readonly #name: string;
  readonly #clients = new WeakMap<PgClient, PgClient>();
  #gate: Gate | null = null;
  /** What was sent, in its order: the names of the store's statements, and whole texts. Without what wakes others, at a time of its own. */
  readonly sent: string[] = [];
  /** Transactions that were taken back, as by a deadlock. */
  rollbacks = 0;
  /** Statements that the server ended because two transactions waited for each other. */
  deadlocks = 0;

  constructor(connectionString: string, name: string) {
    this.#name = name;
    this.#pool = new pg.Pool({ connectionString, max: 4, application_name: name });
  }

  /** Holds the next transaction that comes to `statement`: the name of one of the store's, or a whole text such as `commit`. */
  hold(statement: string): Hold {
    return this.#holdAt(statement, "statement");
  }

  /** Holds the answer to it. */
  holdAnswer(statement: string): HeldAnswer {
    return this.#holdAt(statement, "answer");
  }

  #holdAt(statement: string, holds: Gate["holds"]): HeldAnswer {
    let release: HeldAnswer["release"] = () => {};
    let reach: Gate["reach"] = () => {};
    const reached = new Promise<number>((resolve) => {
      reach = resolve;
    });
    const opened = new Promise<Error | undefined>((resolve) => {
      release = resolve;
    });
    this.#gate = { statement, holds, reach, opened };
    return { reached, release };
  }

  connect(callback: (error: Error | undefined, client?: PgClient) => void): void {
    this.#pool.connect((error, client) => {
      // What the store takes of pg is declared structurally.
      callback(error, client === undefined ? undefined : this.#watched(client as unknown as PgClient));
    });
  }

  /** Resolves once one of its connections waits for a lock; fails after five seconds. */
  async waits(): Promise<void> {
    const deadline = performance.now() + 5_000;
    const text = "select 1 from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'";
    for (;;) {
      const { rows } = await this.#pool.query(text, [this.#name]);
      if (rows.length > 0) return;
      if (performance.now() > deadline) throw new Error("No connection of this pool waits for a lock.");
    }
  }

  on(event: "error", listener: (error: Error) => void): unknown {
    return this.#pool.on(event, listener);
  }

  end(): Promise<void> {
    return this.#pool.end();
  }

  /** The same for a connection that is lent again: the store knows it by that. */
  #watched(client: PgClient): PgClient {
    const watched = this.#clients.get(client) ?? this.#watch(client);
    this.#clients.set(client, watched);
    return watched;
  }

  #watch(client: PgClient): PgClient {
    return new Proxy(client, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== "function") return value;
        if (key !== "query") return value.bind(target);
        return async (query: PgQuery | string, values?: readonly unknown[]) => {
          this.#note(query);
          await this.#pass(query, "statement", target);
          const asked = typeof query === "string" ? target.query(query, values) : target.query(query);
          asked.catch(({ code }: { readonly code?: string }) => {
            if (code === "40P01") this.deadlocks += 1;
          });
          const answer = await asked;
          await this.#pass(query, "answer", target);
          return answer;
        };
      },
    });
  }

  #note(query: PgQuery | string): void {
    const { name, text } = told(query);
    // What a new connection is asked comes at a time of its own too.
    if (name !== "notify" && !text.includes("pg_is_in_recovery")) this.sent.push(name ?? text);
    if (text === "rollback") this.rollbacks += 1;
  }

  async #pass(query: PgQuery | string, holds: Gate["holds"], client: PgClient): Promise<void> {
    const { name, text } = told(query);
    const gate = this.#gate;
    if (gate?.holds !== holds || (name !== gate.statement && text !== gate.statement)) return;
    this.#gate = null;
    gate.reach((client as PgClient & { readonly processID: number }).processID);
    const instead = await gate.opened;
    if (instead !== undefined) throw instead;
  }
}

/** The name of a statement of the store's, and its text. */
function told(query: PgQuery | string): { readonly name: string | undefined; readonly text: string } {
  if (typeof query === "string") return { name: undefined, text: query };
  return { name: query.name?.split(" ")[0], text: query.text };
}
