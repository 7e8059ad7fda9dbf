/** What receivers say of an event, by an answer or a hook, against what the inbox holds at that moment: nothing is said before its commit. */
import type { EventSummary, InboxStore } from "../../../src/index.ts";
import { laneOf, storedEventOf } from "../history.ts";
import type { Course } from "./course.ts";
import type { Reported } from "./process.ts";

export class Said {
  /** What was said too early. */
  readonly wrong: string[] = [];
  /** How often something was said that could be looked at. */
  count = 0;
  readonly #inbox: InboxStore<unknown>;
  readonly #ack: Course["receiver"]["ack"];

  constructor(inbox: InboxStore<unknown>, ack: Course["receiver"]["ack"]) {
    this.#inbox = inbox;
    this.#ack = ack;
  }

  /** With `ack: "handled"` a 2xx says that the event has ended. */
  async answered(identity: string): Promise<void> {
    if (this.#ack !== "handled") return;
    this.count += 1;
    const { items } = await this.#inbox.find({ order: "oldest", limit: 1_000 });
    const event = items.find((one) => storedEventOf(one).identity === identity);
    if (event !== undefined && event.state !== "pending") return;
    if (event !== undefined && (await this.#isActedOn(event))) return;
    const name = event === undefined ? identity : `${laneOf(event)} ${event.sequence}`;
    this.wrong.push(`${name} was answered as handled, and is ${event?.state ?? "not stored"}`);
  }

  async reported(
    kind: "failure" | "dead letter",
    { eventId, lane: key, id: ownId, sequence, attempt }: Reported,
  ): Promise<void> {
    this.count += 1;
    const { source, tenant } = key;
    const lane = await this.#inbox.lane(ownId === null ? key : { source, tenant, id: ownId });
    const event = lane?.events.find(({ id }) => id === eventId);
    const isStored =
      kind === "failure"
        ? lane?.attempts.some((one) => one.eventId === eventId && one.attempt === attempt)
        : event?.state === "dead";
    if (isStored || (event !== undefined && (await this.#isActedOn(event)))) return;
    this.wrong.push(
      `${laneOf({ lane: key, ownId })} ${sequence}: the ${kind} of attempt ${attempt} was reported, and is not stored`,
    );
  }

  /** An operator may have made it pending again. */
  async #isActedOn({ id }: Pick<EventSummary, "id">): Promise<boolean> {
    const audit = await this.#inbox.audit(1_000);
    return audit.some(({ detail }) => detail === `event ${id}`);
  }
}
