/** A pool whose connections stop before a statement that the test names, so that another transaction comes in between. */
import pg from "pg";
import { tapped } from "./place.ts";

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

export class HeldPool extends pg.Pool {
  readonly #name: string;
  #gate: Gate | null = null;
  /** What was sent, in its order: the names of the store's statements, and whole texts. Without what wakes others, at a time of its own. */
  readonly sent: string[] = [];
  /** Transactions that were taken back, as by a deadlock. */
  rollbacks = 0;
  /** Statements that the server ended because two transactions waited for each other. */
  deadlocks = 0;

  constructor(connectionString: string, name: string) {
    super({ connectionString, max: 10, application_name: name });
    this.#name = name;
    tapped(this, async (query, send, { processID }) => {
      const told = { name: query.name?.split(" ")[0], text: query.text };
      this.#note(told);
      await this.#pass(told, "statement", processID);
      const asked = send();
      asked.catch(({ code }: { readonly code?: string }) => {
        if (code === "40P01") this.deadlocks += 1;
      });
      const answer = await asked;
      await this.#pass(told, "answer", processID);
      return answer;
    });
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

  /** Resolves once one of its connections waits for a lock; fails after five seconds. */
  async waits(): Promise<void> {
    const deadline = performance.now() + 5_000;
    const text = "select 1 from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'";
    while ((await this.query(text, [this.#name])).rowCount === 0) {
      if (performance.now() > deadline) throw new Error("No connection of this pool waits for a lock.");
    }
  }

  #note({ name, text }: Told): void {
    // What a new connection is asked comes at a time of its own too.
    if (name !== "notify" && !text.includes("pg_is_in_recovery")) this.sent.push(name ?? text);
    if (text === "rollback") this.rollbacks += 1;
  }

  async #pass({ name, text }: Told, holds: Gate["holds"], serverProcess: number): Promise<void> {
    const gate = this.#gate;
    if (gate?.holds !== holds || (name !== gate.statement && text !== gate.statement)) return;
    this.#gate = null;
    gate.reach(serverProcess);
    const instead = await gate.opened;
    if (instead !== undefined) throw instead;
  }
}

/** The name of a statement of the store's, and its text. */
interface Told {
  readonly name: string | undefined;
  readonly text: string;
}
