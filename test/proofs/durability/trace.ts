/** Reads the calls that strace wrote: for each delivery, was its row written and synced before its 2xx left? */

export interface Verdicts {
  /** Deliveries whose 2xx followed a sync of their row. */
  readonly synced: readonly string[];
  /** Deliveries whose 2xx left before that. */
  readonly unsynced: readonly string[];
}

const WRITE = /\bpwrite(?:64|v)?\((\d+),/;
const SYNC = /\b(?:fsync|fdatasync)\((\d+)\)?.*= 0|\b(?:fsync|fdatasync)\((\d+)\s*\)?$/;
const READ = /\bread(?:v)?\((\d+),/;
const REPLY = /\bwritev?\((\d+),.*HTTP\/1\.1 200/;
const MARKER = /row-\d{5}/g;

/**
 * Follows the calls in their order: a marker read from a socket names that socket's delivery; a write to a file makes it
 * dirty; a sync of that file makes what was written durable; the reply on the socket is the acknowledgement.
 */
export class Account {
  readonly #bySocket = new Map<string, string>();
  readonly #dirty = new Map<string, Set<string>>();
  readonly #durable = new Set<string>();
  readonly #synced: string[] = [];
  readonly #unsynced: string[] = [];

  get verdicts(): Verdicts {
    return { synced: this.#synced, unsynced: this.#unsynced };
  }

  hear(call: string): void {
    const markers = call.match(MARKER) ?? [];
    const reply = REPLY.exec(call);
    const write = WRITE.exec(call);
    const sync = SYNC.exec(call);
    const read = READ.exec(call);
    if (reply) this.#reply(reply[1] ?? "");
    else if (write) this.#write(write[1] ?? "", markers);
    else if (sync) this.#sync(sync[1] ?? sync[2] ?? "");
    else if (read && markers[0] !== undefined) this.#bySocket.set(read[1] ?? "", markers[0]);
  }

  #reply(socket: string): void {
    const marker = this.#bySocket.get(socket);
    if (marker !== undefined) (this.#durable.has(marker) ? this.#synced : this.#unsynced).push(marker);
  }

  #write(file: string, markers: readonly string[]): void {
    const dirty = this.#dirty.get(file) ?? new Set();
    for (const marker of markers) dirty.add(marker);
    this.#dirty.set(file, dirty);
  }

  #sync(file: string): void {
    const dirty = this.#dirty.get(file);
    for (const marker of dirty ?? []) this.#durable.add(marker);
    dirty?.clear();
  }
}
