/** Reads an strace log: for each delivery, was its row written and synced before its 2xx left? */

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
export function judge(lines: readonly string[]): Verdicts {
  const bySocket = new Map<string, string>();
  const dirty = new Map<string, Set<string>>();
  const durable = new Set<string>();
  const synced: string[] = [];
  const unsynced: string[] = [];
  for (const line of lines) {
    const markers = line.match(MARKER) ?? [];
    const reply = REPLY.exec(line);
    const write = WRITE.exec(line);
    const sync = SYNC.exec(line);
    const read = READ.exec(line);
    if (reply) {
      const marker = bySocket.get(reply[1] ?? "");
      if (marker !== undefined) (durable.has(marker) ? synced : unsynced).push(marker);
    } else if (write) {
      const file = dirty.get(write[1] ?? "") ?? new Set();
      for (const marker of markers) file.add(marker);
      dirty.set(write[1] ?? "", file);
    } else if (sync) {
      const file = dirty.get(sync[1] ?? sync[2] ?? "");
      for (const marker of file ?? []) durable.add(marker);
      file?.clear();
    } else if (read && markers[0] !== undefined) {
      bySocket.set(read[1] ?? "", markers[0]);
    }
  }
  return { synced, unsynced };
}
