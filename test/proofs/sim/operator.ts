/** An operator's acts on what a world's inbox holds, at some of its processes or beside them. */
import type { InboxStore } from "../../../src/index.ts";
import type { OperatorsAct } from "./course.ts";
import type { Process } from "./process.ts";

export class Operator {
  readonly #inbox: InboxStore<unknown>;
  readonly #running: () => readonly Process[];
  readonly #say: (line: string) => void;
  acts = 0;

  constructor(inbox: InboxStore<unknown>, running: () => readonly Process[], say: (line: string) => void) {
    this.#inbox = inbox;
    this.#running = running;
    this.#say = say;
  }

  /** What it acts on is chosen from what it sees; by then it may have changed. */
  async act({ kind, which }: OperatorsAct): Promise<void> {
    const [process] = this.#running();
    if (process === undefined) return;
    const onLane = kind === "unblock" || kind === "release_gap";
    const ids = onLane ? await this.#lanes(kind) : await this.#events();
    const id = ids[Math.floor(which * ids.length)];
    if (id === undefined) return;
    this.#say(`operator at ${process.name}: ${kind} ${id}`);
    const answer = await asked(process.receiver, kind, id).catch(() => null);
    this.#say(
      `operator at ${process.name}: ${kind} ${id} was ${answer === null ? "not answered" : JSON.stringify(answer)}`,
    );
    if (answer?.ok === true) this.acts += 1;
  }

  /** Whatever is parked goes on. */
  async unblockAll(): Promise<void> {
    const [process] = this.#running();
    if (process === undefined) return;
    for (const id of await this.#lanes("unblock")) await process.receiver.inbox.unblock(id).catch(() => {});
  }

  async #events(): Promise<readonly number[]> {
    const { items } = await this.#inbox.find({ order: "oldest", limit: 1_000 });
    return items.map(({ id }) => id);
  }

  async #lanes(kind: "unblock" | "release_gap"): Promise<readonly number[]> {
    const statuses = [kind === "unblock" ? "blocked" : "gap"] as const;
    const { items } = await this.#inbox.findLanes({ statuses, limit: 1_000 });
    return items.map(({ id }) => id);
  }
}

function asked({ inbox }: Process["receiver"], kind: OperatorsAct["kind"], id: number) {
  switch (kind) {
    case "replay":
      return inbox.replay(id);
    case "discard":
      return inbox.discard(id);
    case "unblock":
      return inbox.unblock(id);
    case "release_gap":
      return inbox.releaseGap(id);
    default:
      return kind satisfies never;
  }
}
