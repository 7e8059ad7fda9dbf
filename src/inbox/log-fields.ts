/** What logs tell of an event: ids and types. */
import { type LaneKey, publicId } from "../events/identity.ts";
import type { EventId } from "./record.ts";

interface Named {
  readonly eventId: EventId;
  readonly lane: LaneKey;
  readonly sequence: number;
  readonly eventType: string;
}

/** Without `messageId` where that is none that may be told. */
export function logFieldsOf({ eventId, eventType, sequence, lane }: Named) {
  const messageId = publicId(lane);
  return { eventId, eventType, sequence, ...(messageId !== null && { messageId }) };
}
