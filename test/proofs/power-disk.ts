/** A disk that remembers what was synced: the files as a power cut may leave them, which is not as the programs saw them. */

/** What changes a folder of files. Paths are those of the folder. */
export type Operation =
  | { readonly kind: "create" | "remove" | "sync"; readonly path: string }
  | { readonly kind: "rename"; readonly path: string; readonly to: string }
  | { readonly kind: "write"; readonly path: string; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: "truncate"; readonly path: string; readonly length: number }
  | { readonly kind: "sync_folder" };

type Change = Extract<Operation, { kind: "write" | "truncate" }>;

/** What a disk writes as a whole. */
const SECTOR = 512;

/** A file, whatever it is called. */
interface File {
  /** What is there for certain. */
  synced: Buffer;
  /** What was done since, in order. */
  readonly changes: Change[];
}

export class Disk {
  /** The folder as programs see it, and as it was when it was synced last. */
  readonly #seen = new Map<string, File>();
  #synced = new Map<string, File>();

  apply(operation: Operation): void {
    switch (operation.kind) {
      case "create":
        if (!this.#seen.has(operation.path)) this.#seen.set(operation.path, { synced: Buffer.alloc(0), changes: [] });
        return;
      case "remove":
        this.#seen.delete(operation.path);
        return;
      case "rename":
        this.#seen.set(operation.to, this.#file(operation.path));
        this.#seen.delete(operation.path);
        return;
      case "sync_folder":
        this.#synced = new Map(this.#seen);
        return;
      case "sync":
        makeLast(this.#file(operation.path));
        return;
      default:
        this.#file(operation.path).changes.push(operation);
    }
  }

  /** The files if nothing reached the disk but what was synced: contents by file, and names by folder. */
  strict(): ReadonlyMap<string, Buffer> {
    return new Map([...this.#synced].map(([path, { synced }]) => [path, synced]));
  }

  /**
   * The files if each sector that was written since the last sync is as it was at some moment since, and so are the length of each
   * file and the names in the folder.
   */
  torn(random: () => number): ReadonlyMap<string, Buffer> {
    const folder = random() < 0.5 ? this.#synced : this.#seen;
    return new Map([...folder].map(([path, file]) => [path, tornContent(file, random)]));
  }

  /** The files as programs see them, for holding a recording against what is really there. */
  seen(): ReadonlyMap<string, Buffer> {
    return new Map([...this.#seen].map(([path, file]) => [path, contentAfter(file)]));
  }

  #file(path: string): File {
    const file = this.#seen.get(path);
    if (file === undefined) throw new Error(`${path} is changed, and nobody made it.`);
    return file;
  }
}

function makeLast(file: File): void {
  file.synced = contentAfter(file);
  file.changes.length = 0;
}

function contentAfter({ synced, changes }: File): Buffer {
  const content = resized(synced, longestOf(synced, changes));
  for (const change of changes) {
    if (change.kind === "write") change.bytes.copy(content, change.at);
    else content.fill(0, change.length);
  }
  return content.subarray(0, lengthAfter(synced.length, changes));
}

function tornContent({ synced, changes }: File, random: () => number): Buffer {
  if (changes.length === 0) return synced;
  const moment = () => Math.floor(random() * (changes.length + 1));
  const length = lengthAfter(synced.length, changes.slice(0, moment()));
  // At times all sectors are of one moment, so that a whole file of the past is tried as well.
  const common = random() < 0.3 ? moment() : null;
  const moments = new Map<number, number>();
  const momentOf = (sector: number) => {
    const known = moments.get(sector) ?? common ?? moment();
    moments.set(sector, known);
    return known;
  };
  const longest = longestOf(synced, changes);
  const content = resized(synced, longest);
  for (const [index, change] of changes.entries()) {
    const from = change.kind === "write" ? change.at : change.length;
    const to = change.kind === "write" ? change.at + change.bytes.length : longest;
    for (let start = from; start < to; start = nextSector(start)) {
      if (momentOf(Math.floor(start / SECTOR)) <= index) continue;
      const end = Math.min(to, nextSector(start));
      if (change.kind === "write") change.bytes.copy(content, start, start - from, end - from);
      else content.fill(0, start, end);
    }
  }
  return resized(content, length);
}

const nextSector = (at: number) => (Math.floor(at / SECTOR) + 1) * SECTOR;

function lengthAfter(length: number, changes: readonly Change[]): number {
  return changes.reduce(
    (before, change) =>
      change.kind === "truncate" ? change.length : Math.max(before, change.at + change.bytes.length),
    length,
  );
}

/** The length that it never exceeded. */
function longestOf(synced: Buffer, changes: readonly Change[]): number {
  return changes.reduce((longest, change) => Math.max(longest, lengthAfter(0, [change])), synced.length);
}

/** A copy, shortened or filled up with zeros. */
function resized(content: Buffer, length: number): Buffer {
  const copy = Buffer.alloc(length);
  content.copy(copy);
  return copy;
}
