/** Takes events into their lanes, which this transaction holds, or counts them as duplicates. */
import { sameContent } from "../../events/parse.ts";
import {
  acceptanceOf,
  acceptNew,
  countDuplicate,
  duplicateOf,
  knownEvent,
  type LateEvents,
} from "../../inbox/lanes/accepting.ts";
import type { LaneEvent, LaneState } from "../../inbox/lanes/state.ts";
import type { NewEvent } from "../../inbox/record.ts";
import type { Acceptance } from "../../inbox/store.ts";
import { conflictsAmong } from "./bodies.ts";
import { keyOf, keyText } from "./lanes.ts";
import type { Names } from "./names.ts";
import type { WantedLane, Workspace } from "./workspace.ts";

export type Accepted = Exclude<Acceptance, { outcome: "failed" }>;

interface Incoming {
  readonly events: readonly NewEvent[];
  readonly lateEvents: LateEvents;
  /** A number for each, from the workspace's `enter()`. */
  readonly ids: readonly number[];
}

/** The lanes of `events`, to be locked before these are accepted. */
export function lanesOf(names: Names, events: readonly NewEvent[]): WantedLane[] {
  return events.map(({ lane }) => ({ key: keyOf(names, lane), lane }));
}

/** @param added - called for the lane of each event that is new, before the next is looked at */
export async function acceptAll(
  work: Workspace,
  { events, lateEvents, ids }: Incoming,
  added: (lane: LaneState) => void = () => {},
): Promise<readonly Accepted[]> {
  const lanes = events.map((event) => work.byKey.get(keyText(keyOf(work.names, event.lane))));
  const differing = await conflictsAmong(work.session, events, (event, index) => knownEvent(lanes[index], event));
  const bodies = new Map<number, Uint8Array>();
  return events.map((incoming, index) => {
    const [lane, id] = [lanes[index], ids[index]];
    if (lane === undefined || id === undefined) throw new RangeError("The lane of an event was not locked.");
    const first = knownEvent(lane, incoming);
    if (first !== undefined) {
      const conflict = differing.has(index) || differs(incoming, first, bodies.get(first.id));
      countAgain(work, first, { incoming, conflict });
      return duplicateOf(first, conflict);
    }
    const newcomer = acceptNew(work.moment, lane, incoming, { id, lateEvents });
    bodies.set(id, incoming.raw);
    work.adds({ bodies: [{ event: id, raw: incoming.raw }], conflicts: [] });
    added(lane);
    return acceptanceOf(newcomer);
  });
}

/** The first delivery of an event may have come with this one: then its body is not stored yet. */
function differs(incoming: NewEvent, first: LaneEvent, body: Uint8Array | undefined): boolean {
  return body !== undefined && Buffer.compare(first.digest, incoming.digest) !== 0 && !sameContent(body, incoming.raw);
}

function countAgain(
  work: Workspace,
  first: LaneEvent,
  { incoming, conflict }: { readonly incoming: NewEvent; readonly conflict: boolean },
): void {
  const isFirst = countDuplicate(work.moment, first, incoming, conflict);
  const { digest, signedAt, raw } = incoming;
  const row = { event: first.id, digest, signedAt, at: work.moment.now, raw };
  if (isFirst) work.adds({ bodies: [], conflicts: [row] });
}
