/** A message, and a quarantined body, as they are shown: masked, unless somebody who may has asked for more. */
import type { EventRecord, LaneRecord, QuarantineRecord } from "../inbox/record.ts";
import { bodyShape, eventShape, laneShape, quarantineShape } from "../receiver/shown/shapes.ts";
import type { Message, MessageEvent, QuarantineDetail } from "./api.ts";
import { drawMessage } from "./drawing/draw-message.ts";

export function shownMessage(lane: LaneRecord, now: number, revealed: boolean): Message {
  const { gapSince: _, ...facts } = laneShape(lane, revealed);
  return {
    ...facts,
    events: lane.events.map((event) => shownEvent(event, revealed)),
    drawing: drawMessage(lane, now),
    revealed,
  };
}

function shownEvent(event: EventRecord, revealed: boolean): MessageEvent {
  const { trace, digest, raw } = event;
  return {
    ...eventShape(event),
    trace,
    digest: Buffer.from(digest).toString("hex"),
    bytes: raw?.length ?? 0,
    body: bodyShape(raw, revealed),
  };
}

export function shownQuarantined(row: QuarantineRecord, revealed: boolean): QuarantineDetail {
  return { ...quarantineShape(row), trace: row.trace, body: bodyShape(row.raw, revealed), revealed };
}
