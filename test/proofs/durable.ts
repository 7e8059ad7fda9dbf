/** `npm run prove -- durable`: for 200 deliveries (`--full` 1,000) the kernel tells that write and sync came before the 2xx. */
import { join } from "node:path";
import { inFolder, type Programme, type Proof } from "./programme.ts";
import { callsIn, straceIsMissing, TracedReceiver } from "./strace.ts";

const SHORT = 200;
const FULL = 1_000;
const CONTROL = 50;
const CALLS = "read,readv,write,writev,pwrite64,pwritev,fsync,fdatasync";

export const durable: Programme = {
  name: "durable",
  what: "the row of every delivery is written and synced before its 2xx leaves, by the kernel's account",
  async run({ full, say }): Promise<Proof> {
    const unit = "deliveries synced before their 2xx";
    const missing = straceIsMissing();
    if (missing !== null) return { count: 0, unit, problems: [`left out: ${missing}`] };
    const deliveries = full ? FULL : SHORT;
    const account = await tracedRun(deliveries);
    say(`FULL     ${lineOf(account)}`);
    const problems = account.unsynced.map((marker) => `${marker} was acknowledged before it was synced`);
    const count = new Set(account.synced).size;
    if (count !== deliveries) problems.push(`only ${count} of ${deliveries} were seen synced`);
    // The control: a driver that only says FULL. In neither mode does a commit sync the log.
    for (const pretence of ["NORMAL", "OFF"] as const) {
      const control = await tracedRun(CONTROL, pretence);
      say(`${pretence.padEnd(8)} ${lineOf(control)}`);
      const unsynced = new Set(control.unsynced).size;
      if (unsynced !== CONTROL || control.synced.length > 0)
        problems.push(`with ${pretence} only ${unsynced} of ${CONTROL} were seen unsynced`);
    }
    return { count, unit, problems: problems.slice(0, 20) };
  },
};

function lineOf({ synced, unsynced }: Account): string {
  return `${synced.length} answers after the sync of their row, ${unsynced.length} before it`;
}

/** The kernel's account of deliveries to a receiver, whose driver may only pretend to set `synchronous=FULL`. */
function tracedRun(deliveries: number, pretence?: "NORMAL" | "OFF"): Promise<Account> {
  return inFolder(async (folder) => {
    const log = join(folder, "calls");
    const driver = pretence === undefined ? {} : { driver: pretence };
    const place = { path: join(folder, "inbox.db") };
    const receiver = await TracedReceiver.start({ place, ...driver }, { calls: CALLS, more: ["-s", "9000"], log });
    await receiver.deliver(0, deliveries).finally(() => receiver.stop());
    const account = new Account();
    for await (const call of callsIn(log)) account.hear(call);
    return account;
  });
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
class Account {
  /** Deliveries whose 2xx followed a sync of their row, and those whose 2xx left before that. */
  readonly synced: string[] = [];
  readonly unsynced: string[] = [];
  readonly #bySocket = new Map<string, string>();
  readonly #dirty = new Map<string, Set<string>>();
  readonly #durable = new Set<string>();

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
    if (marker !== undefined) (this.#durable.has(marker) ? this.synced : this.unsynced).push(marker);
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
