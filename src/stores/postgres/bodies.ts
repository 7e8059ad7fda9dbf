/** Bodies of stored events, read only where something looks at them. */
import { sameContent } from "../../events/parse.ts";
import type { LaneEvent } from "../../inbox/lanes/state.ts";
import type { NewEvent } from "../../inbox/record.ts";
import { arrayOf } from "./arrays.ts";
import type { Session } from "./session.ts";

const BODIES = "select event, raw from {}.body where event = any($1::bigint[])";

export async function readBodies(
  session: Session,
  events: readonly number[],
): Promise<ReadonlyMap<number, Uint8Array>> {
  if (events.length === 0) return new Map();
  const rows = await session.rows<{ event: number; raw: Buffer }>("bodies", BODIES, [arrayOf("bigint", events)]);
  return new Map(rows.map(({ event, raw }) => [event, raw]));
}

/** The indexes of those incoming events whose identity is stored with other content. A pruned body tells nothing. */
export async function conflictsAmong(
  session: Session,
  incoming: readonly NewEvent[],
  known: (event: NewEvent, index: number) => LaneEvent | undefined,
): Promise<ReadonlySet<number>> {
  const suspects = incoming.flatMap((event, index) => {
    const first = known(event, index);
    if (first === undefined || !first.hasBody || Buffer.compare(first.digest, event.digest) === 0) return [];
    return [{ index, first: first.id, raw: event.raw }];
  });
  const bodies = await readBodies(
    session,
    suspects.map(({ first }) => first),
  );
  const differing = suspects.filter(({ first, raw }) => {
    const body = bodies.get(first);
    return body !== undefined && !sameContent(body, raw);
  });
  return new Set(differing.map(({ index }) => index));
}
