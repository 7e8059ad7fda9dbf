/** Finds what is to be erased, in slices that leave the event loop free. */
import type { Act } from "../../inbox/store.ts";
import { createMentionTest } from "../../inbox/subject.ts";
import { TAG } from "../codes.ts";
import { LANES_OF_MESSAGE, lanesWith } from "./find.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { inSlices, type Walk } from "./slices.ts";

export type Subject = Extract<Act, { kind: "erase" }>["subject"];

/** A body that has neither the text nor an escape in it cannot name it, and need not be read. */
const MAY_NAME = "(instr(raw, ?) > 0 or instr(raw, x'5c') > 0)";

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
      ? await this.#inbox.during(() => lanesWith(this.#inbox, "peer", subject.peer))
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

  async #scan(table: Walk["table"], sql: string, value: unknown): Promise<number[]> {
    const found: number[] = [];
    await inSlices(this.#inbox, { table }, async (from, to) => {
      found.push(...(await this.#inbox.during(() => this.#read(sql, [from, to, value]))));
      return false;
    });
    return found;
  }

  #read(sql: string, values: readonly unknown[]): number[] {
    const rows = this.#inbox.db.prepare(sql).all(...values) as { readonly id: number; readonly raw?: Buffer }[];
    return rows.filter(({ raw }) => raw === undefined || this.#isNamedIn(raw)).map(({ id }) => id);
  }
}
