/** What the history checker asks of an inbox on Postgres: the table that handlers write, and what the inbox holds at the end. */
import pg from "pg";
import type { EffectStatement } from "../../src/inbox/store.ts";
import { type HandlerContext, openInbox } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { effectOf, type HandledEffect, type StoredEvent, storedEventOf } from "./history.ts";

export interface PostgresPlace {
  readonly url: string;
  readonly schema: string;
}

const PAGE = 1_000;

/** Next to the schema. */
export const effectTable = (schema: string) => `create table ${schema}_effect (
  id bigint generated always as identity primary key, identity text, message text, sequence int, attempt int, late boolean, replay boolean)`;

/** What an effect does besides its row. */
export interface EffectExtras {
  /** Columns that the programme added to the table. */
  readonly more?: () => Readonly<Record<string, unknown>>;
  /** Statements behind that of the row. */
  readonly also?: readonly EffectStatement[];
}

/** Commits the one effect of an event, declared for every second event and as a function for the others. `own` is as in `effectOf`. */
export function commitEffect(
  ctx: HandlerContext<PgClient>,
  schema: string,
  own: Partial<HandledEffect>,
  { more = () => ({}), also = [] }: EffectExtras = {},
): void {
  const statement = () => {
    const { messageId: message, ...effect } = effectOf(ctx, own);
    const row = { ...effect, message, ...more() };
    const places = Object.keys(row).map((_, index) => `$${index + 1}`);
    const text = `insert into ${schema}_effect (${Object.keys(row)}) values (${places})`;
    return { text, values: Object.values(row) };
  };
  if (isDeclared(ctx.meta.eventId)) return ctx.commit([statement(), ...also]);
  ctx.commit(async (client) => {
    for (const { text, values } of [statement(), ...also]) await client.query(text, [...values]);
  });
}

const isDeclared = (eventId: number) => eventId % 2 === 0;

export async function contentsOn({ url, schema }: PostgresPlace): Promise<{
  readonly effects: readonly HandledEffect[];
  readonly stored: readonly StoredEvent[];
}> {
  const store = postgresStore(url, { schema, listen: false, maxConnections: 1 });
  const inbox = await openInbox({ store, logger: silentLogger });
  const stored: StoredEvent[] = [];
  for (let after: number | null | undefined; after !== null; ) {
    const page = await inbox.find({ order: "oldest", limit: PAGE, ...(after === undefined ? {} : { after }) });
    stored.push(...page.items.map(storedEventOf));
    after = page.next;
  }
  await inbox.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<HandledEffect>(
      `select identity, message as "messageId", sequence, attempt, late, replay from ${schema}_effect order by id`,
    );
    return { effects: rows, stored };
  } finally {
    await client.end();
  }
}
