/** What logs tell of an event: ids and types. */
import { publicId } from "../events/identity.ts";
import type { EventNotice } from "./dispatch.ts";

/** Without `messageId` where that is none that may be told. */
export function logFieldsOf({ eventId, eventType, sequence, lane }: EventNotice) {
  const messageId = publicId(lane);
  return { eventId, eventType, sequence, ...(messageId !== null && { messageId }) };
}
