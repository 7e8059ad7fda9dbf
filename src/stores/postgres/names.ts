/** Numbers for texts that repeat: client ids and event types. Entered in transactions of their own, so none is taken back. */
import { bytesText, textBytes } from "./encoding.ts";
import { sqlState } from "./failures.ts";
import { COMMITS_TO_DISK, type PgClient, type Session } from "./session.ts";

interface NameRow {
  readonly id: number;
  readonly name: Buffer;
}

/** How often names were pruned, with a row of nulls where no name is found. */
interface FoundRow {
  readonly pruned: string;
  readonly id: number | null;
  readonly name: Buffer | null;
}

const PRUNED = "coalesce((select value from {}.meta where key = 'names_pruned'), '0')";

/**
 * Fails where names were pruned since those were looked up whose numbers the statement writes (`isOutdated()`). It must be part of that
 * statement: the process that prunes keeps all others from writing lanes and events meanwhile, and a statement that has waited sees what it did.
 */
export const areCurrent = (parameter: number): string =>
  `sqrt(((${PRUNED} = $${parameter}::text)::int - 1)::float8) as names`;

/** What Postgres calls the root of a negative number. */
const NEGATIVE_ROOT = "2201F";

/** Names were pruned since they were looked up: they are to be forgotten, and the transaction is to be run again. */
export function isOutdated(error: unknown): boolean {
  return error instanceof NamesPruned || sqlState(error) === NEGATIVE_ROOT;
}

/** The same, seen while reading. */
class NamesPruned extends Error {
  constructor() {
    super("Names were pruned meanwhile.");
  }
}

/** Ids are read first: entering one that is there would use up a number each time. */
const statements = (table: "client" | "kind") => ({
  find: {
    name: `find_${table}`,
    text: `select p.pruned, t.id, t.name from (select ${PRUNED} as pruned) p left join {}.${table} t on t.name = any($1::bytea[])`,
  },
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
  const rows = await session.rows<FoundRow>(name, text, [names.map(textBytes)]);
  return rows.flatMap(({ id }) => (id === null ? [] : [id]));
}

/** Texts are as many as clients and event types; a signer who invents more must not fill the memory. */
const MOST_REMEMBERED = 10_000;
const MOST_CHARACTERS = 1_000_000;

/** How often names had been pruned when they were looked up. */
class Version {
  /** Null until the first look. */
  pruned: string | null = null;
  /** A later look found another number: what was found before may be gone. */
  isOutdated = false;
}

class NameTable {
  readonly #version: Version;
  #characters = 0;
  readonly #sql: ReturnType<typeof statements>;
  readonly #ids = new Map<string, number>();
  readonly #names = new Map<number, string>();

  constructor(table: "client" | "kind", version: Version) {
    this.#sql = statements(table);
    this.#version = version;
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
    for (const { pruned, id, name: bytes } of await session.rows<FoundRow>(name, text, [missing.map(textBytes)])) {
      this.#version.pruned ??= pruned;
      if (pruned !== this.#version.pruned) this.#version.isOutdated = true;
      else if (id !== null && bytes !== null) this.#ids.set(this.#keep({ id, name: bytes }), id);
    }
  }

  /** @throws NamesPruned where the rows that name them are gone by now too */
  async learn(session: Session, ids: Iterable<number>): Promise<void> {
    const unknown = [...new Set(ids)].filter((id) => !this.#names.has(id));
    if (unknown.length === 0) return;
    const { name, text } = this.#sql.findIds;
    for (const row of await session.rows<NameRow>(name, text, [unknown])) this.#keep(row);
    if (unknown.some((id) => !this.#names.has(id))) throw new NamesPruned();
  }

  get isFull(): boolean {
    return this.#names.size > MOST_REMEMBERED || this.#characters > MOST_CHARACTERS;
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

  /** A number is never given twice, so what it names may be kept whatever was pruned; the way back is kept by `find()` alone. */
  #keep({ id, name }: NameRow): string {
    const text = bytesText(name);
    if (!this.#names.has(id)) this.#characters += text.length;
    this.#names.set(id, text);
    return text;
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
  readonly #version = new Version();
  readonly #clients = new NameTable("client", this.#version);
  readonly #kinds = new NameTable("kind", this.#version);

  /** To be compared by the statement that writes their numbers, see `areCurrent`. */
  get pruned(): string {
    return this.#version.pruned ?? "";
  }

  get isOutdated(): boolean {
    return this.#version.isOutdated;
  }

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
    if (this.#names.isFull || this.#names.isOutdated || !this.#seen.has(client)) this.#names = new Names();
    this.#seen.add(client);
    return this.#names;
  }

  forget(): void {
    this.#names = new Names();
  }
}
