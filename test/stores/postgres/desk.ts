/** A store and a table of notes that effects write to, for tests of effects. */
import { onTestFinished } from "vitest";
import type {
  Effect,
  EffectFunction,
  InboxStore,
  Lease,
  OpenContext,
  Settle,
  SettleResult,
} from "../../../src/inbox/store.ts";
import { type PgClient, type PgPool, postgresStore } from "../../../src/stores/postgres.ts";
import { event, openForReceiver, turn } from "../sqlite-turns.ts";
import { newPool, newSchema, sql } from "./place.ts";

type Store = InboxStore<PgClient>;

interface Notes {
  readonly schema: string;
  readonly notes: () => Promise<unknown[]>;
  readonly write: (text: string) => EffectFunction<PgClient>;
}

interface Desk extends Notes {
  readonly store: Store;
  /** Accepts an event of each message, and leases them. */
  readonly leases: (...ids: readonly string[]) => Promise<readonly Lease[]>;
  /** As one turn answers. */
  readonly ask: (...settles: readonly Settle<PgClient>[]) => Promise<readonly SettleResult[]>;
  /** Asks again for what is unfinished, as the core does. */
  readonly settle: (...settles: readonly Settle<PgClient>[]) => Promise<readonly SettleResult[]>;
}

/** What a settle answers. */
export const SETTLED = { status: "settled" } as const;
export const UNFINISHED = { status: "unfinished" } as const;
export const failed = (error: object) => ({ status: "effect_failed", error });

export async function makeNotes(): Promise<Notes> {
  const schema = newSchema();
  await sql(`create table public.${schema}_note (text text not null unique)`);
  onTestFinished(() => sql(`drop table public.${schema}_note`).then(() => {}));
  return {
    schema,
    notes: async () => (await sql(`select text from public.${schema}_note order by text`)).map(({ text }) => text),
    write: (text) => (client) => client.query(`insert into public.${schema}_note values ($1)`, [text]),
  };
}

export async function openDesk(pool: PgPool = newPool(), context: Partial<OpenContext> = {}): Promise<Desk> {
  const notes = await makeNotes();
  const store = await openAt(notes.schema, pool, context);
  return {
    ...notes,
    store,
    leases: (...ids) => leases(store, ...ids),
    ask: (...settles) => ask(store, ...settles),
    settle: (...settles) => settle(store, ...settles),
  };
}

/** A desk whose event of message `m` is being handled; `end` completes it with effects. */
export async function openHandling(pool?: PgPool, context?: Partial<OpenContext>) {
  const desk = await openDesk(pool, context);
  const [lease] = await desk.leases("m");
  return { ...desk, lease, end: (...effects: readonly Effect<PgClient>[]) => desk.settle(complete(lease, ...effects)) };
}

/** Another process's store on the same inbox. */
export async function openAt(
  schema: string,
  database: string | PgPool = newPool(),
  context: Partial<OpenContext> = {},
): Promise<Store> {
  const store = postgresStore(database, { schema, listen: false });
  await openForReceiver(store, context);
  onTestFinished(() => store.close());
  return store;
}

export async function leases(store: Store, ...ids: readonly string[]): Promise<readonly Lease[]> {
  const accepts = ids.map((id) => event(id));
  return (await store.step(turn<PgClient>({ accepts, claim: { limit: ids.length } }))).leases;
}

export function complete(lease: Lease | undefined, ...effects: readonly Effect<PgClient>[]): Settle<PgClient> {
  if (lease === undefined) throw new Error("There is no lease.");
  return { kind: "complete", lease, outcome: "handled", effects };
}

/** As one turn answers. */
export async function ask(store: Store, ...settles: readonly Settle<PgClient>[]): Promise<readonly SettleResult[]> {
  return (await store.step(turn<PgClient>({ settles }))).settled;
}

/** Asks again for what is unfinished, as the core does. */
export async function settle(store: Store, ...settles: readonly Settle<PgClient>[]): Promise<readonly SettleResult[]> {
  const settled = [...(await ask(store, ...settles))];
  for (;;) {
    const open = settled.flatMap(({ status }, index) => (status === "unfinished" ? [index] : []));
    if (open.length === 0) return settled;
    const again = await ask(store, ...open.flatMap((index) => settles[index] ?? []));
    for (const [place, index] of open.entries()) settled[index] = again[place] ?? { status: "lost" };
  }
}
