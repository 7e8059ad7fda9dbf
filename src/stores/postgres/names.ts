/** Numbers for texts that repeat: client ids and event types. Entered in transactions of their own, so none is taken back. */
import type { PgClient } from "./driver.ts";
import { COMMITS_TO_DISK, type Session } from "./session.ts";
import { bytesText, textBytes } from "./text.ts";

interface NameRow {
  readonly id: number;
  readonly name: Buffer;
}

/** Ids are read first: entering one that is there would use up a number each time. */
const statements = (table: "client" | "kind") => ({
  find: { name: `find_${table}`, text: `select id, name from {}.${table} where name = any($1::bytea[])` },
  findIds: { name: `name_${table}`, text: `select id, name from {}.${table} where id = any($1::int[])` },
  enter: {
    name: `enter_${table}`,
    // On disk before its number is used, whatever the server's default: this process remembers it through a crash of the server.
    text: `insert into {}.${table} (name) select unnest($1::bytea[]) where ${COMMITS_TO_DISK} = 'on'
      order by 1 on conflict (name) do nothing`,
  },
});

/** The numbers of those names that the inbox knows. As values, and not as part of a larger statement, they tell the planner how many rows to expect. */
export async function idsOf(session: Session, table: "client" | "kind", names: readonly string[]): Promise<number[]> {
  const { name, text } = statements(table).find;
  const rows = await session.rows<NameRow>(name, text, [names.map(textBytes)]);
  return rows.map(({ id }) => id);
}

/** Texts are as many as clients and event types; a signer who invents more must not fill the memory. */
const MOST_REMEMBERED = 10_000;

class NameTable {
  readonly #sql: ReturnType<typeof statements>;
  readonly #ids = new Map<string, number>();
  readonly #names = new Map<number, string>();

  constructor(table: "client" | "kind") {
    this.#sql = statements(table);
  }

  /** Outside of a transaction. */
  async enter(session: Session, names: readonly string[]): Promise<void> {
    await this.find(session, names);
    const unknown = this.#missing(names);
    if (unknown.length === 0) return;
    const { name, text } = this.#sql.enter;
    await session.rows(name, text, [unknown.map(textBytes)]);
    await this.find(session, unknown);
  }

  /** Looks up what is not known, and enters nothing. */
  async find(session: Session, names: readonly string[]): Promise<void> {
    const missing = this.#missing(names);
    if (missing.length === 0) return;
    const { name, text } = this.#sql.find;
    for (const row of await session.rows<NameRow>(name, text, [missing.map(textBytes)])) this.#keep(row);
  }

  async learn(session: Session, ids: Iterable<number>): Promise<void> {
    const unknown = [...new Set(ids)].filter((id) => !this.#names.has(id));
    if (unknown.length === 0) return;
    const { name, text } = this.#sql.findIds;
    for (const row of await session.rows<NameRow>(name, text, [unknown])) this.#keep(row);
  }

  get isFull(): boolean {
    return this.#ids.size > MOST_REMEMBERED;
  }

  knows(name: string): boolean {
    return this.#ids.has(name);
  }

  id(name: string): number {
    const id = this.#ids.get(name);
    if (id === undefined) throw new RangeError("A name was not entered before it is used.");
    return id;
  }

  name(id: number): string {
    const name = this.#names.get(id);
    if (name === undefined) throw new RangeError(`The inbox holds the number ${id} for a name that it does not know.`);
    return name;
  }

  #missing(names: readonly string[]): string[] {
    return [...new Set(names)].filter((name) => !this.#ids.has(name));
  }

  #keep({ id, name }: NameRow): void {
    const text = bytesText(name);
    this.#ids.set(text, id);
    this.#names.set(id, text);
  }
}

/** What events name. */
export type Naming = readonly { readonly lane: { readonly apiClientId: string }; readonly eventType: string }[];

/** Names that a transaction needs are not there: it is run again once they are entered. */
export class NamesMissing extends Error {
  readonly events: Naming;

  constructor(events: Naming) {
    super("Names that were entered are not there.");
    this.events = events;
  }
}

export class Names {
  readonly #clients = new NameTable("client");
  readonly #kinds = new NameTable("kind");

  get isFull(): boolean {
    return this.#clients.isFull || this.#kinds.isFull;
  }

  /** Whether all of it was entered or learned before: then there is nothing to ask. */
  knows(events: Naming): boolean {
    return events.every(({ lane, eventType }) => this.#clients.knows(lane.apiClientId) && this.#kinds.knows(eventType));
  }

  /** What is not known of it is looked up, as in a transaction. @throws NamesMissing */
  async find(session: Session, events: Naming): Promise<void> {
    if (this.knows(events)) return;
    for (const [table, names] of this.#named(events)) await table.find(session, names);
    if (!this.knows(events)) throw new NamesMissing(events);
  }

  async enter(session: Session, events: Naming): Promise<void> {
    for (const [table, names] of this.#named(events)) await table.enter(session, names);
  }

  async learn(
    session: Session,
    ids: { readonly clients: Iterable<number>; readonly kinds: Iterable<number> },
  ): Promise<void> {
    await this.#clients.learn(session, ids.clients);
    await this.#kinds.learn(session, ids.kinds);
  }

  #named(events: Naming): readonly (readonly [NameTable, readonly string[]])[] {
    return [
      [this.#clients, events.map(({ lane }) => lane.apiClientId)],
      [this.#kinds, events.map(({ eventType }) => eventType)],
    ];
  }

  clientId = (name: string): number => this.#clients.id(name);
  kindId = (name: string): number => this.#kinds.id(name);
  client = (id: number): string => this.#clients.name(id);
  kind = (id: number): string => this.#kinds.name(id);
}

/**
 * What is remembered of names. A standby that takes over may lack the last commits, and may give their numbers to other names: so
 * nothing is taken over to a connection that is new. Who has begun goes on with what it began with.
 */
export class NameBook {
  #names = new Names();
  readonly #seen = new WeakSet<PgClient>();

  knows(events: Naming): boolean {
    return this.#names.knows(events);
  }

  /** For one transaction, or what reads, on a connection: to be asked for once. */
  on({ client }: Pick<Session, "client">): Names {
    if (this.#names.isFull || !this.#seen.has(client)) this.#names = new Names();
    this.#seen.add(client);
    return this.#names;
  }
}
