/** A pool that knows what a server was asked and has not answered, so that a world's time can wait for it. */
import type { PgClient, PgPool, PgQuery, PgResult } from "../../../src/stores/postgres.ts";

/** Both ways to ask that `PgClient` declares. */
type Query = (asked: PgQuery | string, values?: readonly unknown[]) => Promise<PgResult>;

/** What is open at a server, of all pools that share it. */
export class Unanswered {
  #count = 0;
  #waiting: (() => void)[] = [];

  get count(): number {
    return this.#count;
  }

  /** Resolves when nothing is open. */
  none(): Promise<void> {
    return this.#count === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  add(by: number): void {
    this.#count += by;
    if (this.#count > 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/**
 * `pool`, with each connection that is awaited and each statement counted in `unanswered`, until it is cut: then it gets no more answers.
 *
 * @param asks - called before a statement is sent
 */
export function countedPool(
  pool: PgPool,
  unanswered: Unanswered,
  asks: (client: PgClient, text: string) => void,
): { readonly pool: PgPool; forget(): void } {
  const known = new WeakSet<PgClient>();
  let mine = 0;
  let isForgotten = false;
  const count = (by: number) => {
    if (isForgotten) return;
    mine += by;
    unanswered.add(by);
  };
  const counting = (client: PgClient) => {
    if (known.has(client)) return;
    known.add(client);
    const query = client.query.bind(client) as Query;
    client.query = (asked: PgQuery | string, values?: readonly unknown[]) => {
      asks(client, typeof asked === "string" ? asked : asked.text);
      count(1);
      const answer = query(asked, values);
      const answered = () => count(-1);
      answer.then(answered, answered);
      return answer;
    };
  };
  const connect: PgPool["connect"] = (callback) => {
    count(1);
    pool.connect((error, client) => {
      count(-1);
      if (client !== undefined) counting(client);
      callback(error, client);
    });
  };
  const forget = () => {
    count(-mine);
    isForgotten = true;
  };
  return { pool: { connect, end: () => pool.end(), on: pool.on.bind(pool), options: pool.options ?? {} }, forget };
}
