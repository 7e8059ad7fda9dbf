/** What `oncehook listen` says of an event that was handled: an object for programs, a line for people. */
import { lanePlaceOf, publicId } from "../../events/identity.ts";
import type { WebhookEvent } from "../../events/types.ts";
import type { HandlerContext } from "../../index.ts";
import { isRecord } from "../../internal/type-guards.ts";
import { maskedBody } from "../../receiver/shown/masked-body.ts";
import { printable, timeText } from "../inbox/printable.ts";

/** The context of the handler that prints. */
export type PrintContext = Pick<
  HandlerContext,
  "identity" | "attempt" | "missing" | "replay" | "outOfOrder" | "meta" | "rawBody"
>;

/** One line with `--json`. */
export interface HandledShape {
  /** The event's identity. */
  readonly handled: string;
  readonly eventType: string;
  readonly direction: "outbound" | "inbound" | "unlaned";
  readonly apiClientId: string;
  /** Null for an event that belongs to no message. */
  readonly messageId: string | null;
  /** 0 for events that have no place in a sequence. */
  readonly sequence: number;
  readonly attempt: number;
  readonly late: boolean;
  readonly replay: boolean;
  readonly missing: { readonly from: number; readonly to: number } | null;
  /** The body with numbers masked and texts left out, or as it came with `--show-content`. */
  readonly event: unknown;
}

export function handledShape(event: WebhookEvent, ctx: PrintContext, showContent: boolean): HandledShape {
  const { lane } = ctx.meta;
  return {
    handled: ctx.identity,
    eventType: event.eventType,
    direction: lane.tag,
    apiClientId: lane.apiClientId,
    messageId: publicId(lane),
    sequence: lanePlaceOf(event, () => "").sequence,
    attempt: ctx.attempt,
    late: ctx.outOfOrder,
    replay: ctx.replay,
    missing: ctx.missing,
    event: showContent ? event : maskedBody(ctx.rawBody),
  };
}

/** `2026-01-01 12:00:00Z  message.sent  msg_1 #2  (attempt 2)  {"status":"sent"}` */
export function handledText(shape: HandledShape, at: number): string {
  const { eventType, messageId, direction, sequence, attempt, late, replay, missing, event } = shape;
  const remarks = [
    attempt > 1 && `attempt ${attempt}`,
    late && "late",
    replay && "replay",
    missing !== null && `${missing.from}-${missing.to} missing`,
  ].filter((remark) => remark !== false);
  const place = direction === "outbound" ? `${messageId} #${sequence}` : (messageId ?? "-");
  const told = remarks.length === 0 ? [] : [`(${remarks.join(", ")})`];
  const content = isRecord(event) && "data" in event ? event.data : event;
  return printable([timeText(at), eventType, place, ...told, JSON.stringify(content)].join("  "));
}
