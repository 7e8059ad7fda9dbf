/** Finds what is to be erased, in slices that leave the event loop free. */
import { setImmediate } from "node:timers/promises";
import { createMentionTest } from "../../inbox/mention.ts";
import type { Act } from "../../inbox/store.ts";
import { TAG } from "../codes.ts";
import { LANES_OF_MESSAGE } from "./find.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { Pace } from "./pace.ts";

export type Subject = Extract<Act, { kind: "erase" }>["subject"];

/** A body that has neither the text nor an escape in it cannot name it, and need not be read. */
const MAY_NAME = "(instr(raw, ?) > 0 or instr(raw, x'5c') > 0)";

const TOLD = "select id from oncehook_lane where id between ? and ? and peer = ?";
const QUARANTINED = `select id, raw from oncehook_quarantine where id between ? and ? and raw is not null and ${MAY_NAME}`;

/** Lanes whose events are of unknown types: only the bodies can tell whom they are about. */
const silent = (bodies: string, where: string) => `select l.id, b.raw
  from oncehook_lane l cross join oncehook_event e on e.lane = l.id cross join ${bodies} b on b.event = e.id
  where l.id between ? and ? and ${where} and ${MAY_NAME}`;

/** Looks through one inbox for one subject. */
export class EraseSearch {
  readonly #inbox: OpenInbox;
  readonly #subject: Subject;
  readonly #text: Buffer;
  readonly #isNamedIn: (raw: Uint8Array) => boolean;

  constructor(inbox: OpenInbox, subject: Subject) {
    const text = "peer" in subject ? subject.peer : subject.messageId;
    this.#inbox = inbox;
    this.#subject = subject;
    this.#text = Buffer.from(text);
    this.#isNamedIn = createMentionTest(text);
  }

  /** Ids of the lanes that are about it, and of those whose bodies name it. */
  async lanes(): Promise<Set<number>> {
    const subject = this.#subject;
    const byPeer = "peer" in subject;
    const told = byPeer
      ? await this.#scan("oncehook_lane", TOLD, subject.peer)
      : await this.#inbox.during(() => this.#read(LANES_OF_MESSAGE, [subject.messageId]));
    const where = byPeer ? `(l.tag = ${TAG.unlaned} or l.peer is null)` : `l.tag = ${TAG.unlaned}`;
    const accepted = await this.#scan("oncehook_lane", silent("oncehook_body", where), this.#text);
    const conflicting = await this.#scan("oncehook_lane", silent("oncehook_conflict", where), this.#text);
    return new Set([...told, ...accepted, ...conflicting]);
  }

  /** Ids of the quarantined bodies that name it. */
  quarantined(): Promise<number[]> {
    return this.#scan("oncehook_quarantine", QUARANTINED, this.#text);
  }

  async #scan(table: string, sql: string, value: unknown): Promise<number[]> {
    const { db, patience } = this.#inbox;
    const pace = new Pace(patience.clock);
    const found: number[] = [];
    const ends = await this.#inbox.during(() =>
      db.prepare(`select min(id) as at, max(id) as last from ${table}`).get(),
    );
    let { at, last } = ends as { readonly at: number | null; readonly last: number | null };
    while (at !== null && last !== null && at <= last) {
      const from: number = at;
      at += await pace.take(async (size) => {
        const ids = await this.#inbox.during(() => this.#read(sql, [from, from + size - 1, value]));
        found.push(...ids);
        return size;
      });
      await setImmediate();
    }
    return found;
  }

  #read(sql: string, values: readonly unknown[]): number[] {
    const rows = this.#inbox.db.prepare(sql).all(...values) as { readonly id: number; readonly raw?: Buffer }[];
    return rows.filter(({ raw }) => raw === undefined || this.#isNamedIn(raw)).map(({ id }) => id);
  }
}
