/** The events after which the service sends nothing more of a message (EVT-8, EVT-9). */
import type { KnownEventType } from "./types.ts";

export const TERMINAL_EVENT_TYPES: readonly KnownEventType[] = ["message.delivery", "message.failed"];

export function isTerminal(eventType: string): boolean {
  return (TERMINAL_EVENT_TYPES as readonly string[]).includes(eventType);
}
