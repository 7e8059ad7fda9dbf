/** Numbers for texts that repeat: client ids and event types. Entered in transactions of their own, so that none is rolled back. */
import { bytesText, textBytes } from "./encoding.ts";
import { sqlState } from "./failures.ts";
import { COMMITS_TO_DISK, type PgClient, type PgSession } from "./session.ts";

interface NameRow {
  readonly id: number;
  readonly name: Buffer;
}

/** The count of prunings with each name that was found; nulls if there is none. */
interface FoundRow {
  readonly pruned: string;
  readonly id: number | null;
  readonly name: Buffer | null;
}

const PRUNED = "coalesce((select value from {}.meta where key = 'names_pruned'), '0')";

/**
 * Fails if names were pruned since the statement's names were looked up (`isOutdated()`). It must be part of the statement that writes
 * their numbers: pruning blocks writes of lanes and events, and a statement that has waited sees its result.
 */
export const areCurrent = (parameter: number): string =>
  `sqrt(((${PRUNED} = $${parameter}::text)::int - 1)::float8) as names`;

/** The SQLSTATE of the root of a negative number. */
const NEGATIVE_ROOT = "2201F";

/** Names were pruned since they were looked up: forget them, and run the transaction again. */
export function isOutdated(error: unknown): boolean {
  return error instanceof NamesPruned || sqlState(error) === NEGATIVE_ROOT;
}

/** Names were pruned, noticed while reading. */
class NamesPruned extends Error {
  constructor() {
    super("Names were pruned meanwhile.");
  }
}

/** Ids are read first, because inserting an existing name would use up a number each time. */
const statements = (table: "client" | "kind") => ({
  find: {
    name: `find_${table}`,
    text: `select p.pruned, t.id, t.name from (select ${PRUNED} as pruned) p left join {}.${table} t on t.name = any($1::bytea[])`,
  },
  findIds: { name: `name_${table}`, text: `select id, name from {}.${table} where id = any($1::int[])` },
  enter: {
    name: `enter_${table}`,
    // On disk before its number is used, because this process remembers the number through a crash of the server.
    text: `insert into {}.${table} (name) select unnest($1::bytea[]) where ${COMMITS_TO_DISK} = 'on'
      order by 1 on conflict (name) do nothing`,
  },
});

/** The numbers of the names that the inbox knows. Passed as values and not joined, so that the planner knows how many rows to expect. */
export async function idsOf(session: PgSession, table: "client" | "kind", names: readonly string[]): Promise<number[]> {
  const { name, text } = statements(table).find;
  const rows = await session.rows<FoundRow>(name, text, [names.map(textBytes)]);
  return rows.flatMap(({ id }) => (id === null ? [] : [id]));
}

/** There are only as many texts as clients and event types; a signer who invents more must not fill the memory. */
const MOST_REMEMBERED = 10_000;
const MOST_CHARACTERS = 1_000_000;

/** The count of prunings when names were looked up. */
class Version {
  /** Null before the first look-up. */
  pruned: string | null = null;
  /** A later look-up found another count: earlier names may be gone. */
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

  /** Enters unknown names. To be called outside a transaction. */
  async enter(session: PgSession, names: readonly string[]): Promise<void> {
    await this.find(session, names);
    const unknown = this.#missing(names);
    if (unknown.length === 0) return;
    const { name, text } = this.#sql.enter;
    await session.rows(name, text, [unknown.map(textBytes)]);
    await this.find(session, unknown);
  }

  /** Looks up unknown names and enters none. */
  async find(session: PgSession, names: readonly string[]): Promise<void> {
    const missing = this.#missing(names);
    if (missing.length === 0) return;
    const { name, text } = this.#sql.find;
    for (const { pruned, id, name: bytes } of await session.rows<FoundRow>(name, text, [missing.map(textBytes)])) {
      this.#version.pruned ??= pruned;
      if (pruned !== this.#version.pruned) this.#version.isOutdated = true;
      else if (id !== null && bytes !== null) this.#ids.set(this.#keep({ id, name: bytes }), id);
    }
  }

  /** Looks up unknown numbers. @throws NamesPruned when a number is gone */
  async learn(session: PgSession, ids: Iterable<number>): Promise<void> {
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

  /** A number is never reused, so its name stays valid after prunings. Only `find()` keeps the number of a name. */
  #keep({ id, name }: NameRow): string {
    const text = bytesText(name);
    if (!this.#names.has(id)) this.#characters += text.length;
    this.#names.set(id, text);
    return text;
  }
}

/** The names of events: their clients and types. */
export type Naming = readonly { readonly lane: { readonly apiClientId: string }; readonly eventType: string }[];

/** Names that a transaction needs are missing: enter them, and run it again. */
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

  /** The count of prunings for `areCurrent`. */
  get pruned(): string {
    return this.#version.pruned ?? "";
  }

  get isOutdated(): boolean {
    return this.#version.isOutdated;
  }

  get isFull(): boolean {
    return this.#clients.isFull || this.#kinds.isFull;
  }

  /** Whether all names are known, so that no query is needed. */
  knows(events: Naming): boolean {
    return events.every(({ lane, eventType }) => this.#clients.knows(lane.apiClientId) && this.#kinds.knows(eventType));
  }

  /** Looks up unknown names, for a transaction. @throws NamesMissing */
  async find(session: PgSession, events: Naming): Promise<void> {
    if (this.knows(events)) return;
    for (const [table, names] of this.#named(events)) await table.find(session, names);
    if (!this.knows(events)) throw new NamesMissing(events);
  }

  async enter(session: PgSession, events: Naming): Promise<void> {
    for (const [table, names] of this.#named(events)) await table.enter(session, names);
  }

  async learn(
    session: PgSession,
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
 * The remembered names. A standby that takes over may lack the last commits, and may give their numbers to other names, so a new connection
 * starts with no names. A running transaction keeps the names that it started with.
 */
export class NameBook {
  #names = new Names();
  readonly #seen = new WeakSet<PgClient>();

  knows(events: Naming): boolean {
    return this.#names.knows(events);
  }

  /** The names for one transaction or read on a connection; call it once. */
  on({ client }: Pick<PgSession, "client">): Names {
    if (this.#names.isFull || this.#names.isOutdated || !this.#seen.has(client)) this.#names = new Names();
    this.#seen.add(client);
    return this.#names;
  }

  forget(): void {
    this.#names = new Names();
  }
}
