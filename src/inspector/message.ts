/** A message, and a quarantined body, as they are shown: masked, unless somebody who may has asked for more. */
import type { EventRecord, LaneRecord, QuarantineRecord } from "../inbox/record.ts";
import { bodyShape, eventShape, laneShape, quarantineShape } from "../receiver/shown.ts";
import type { Message, MessageEvent, QuarantineDetail, QuarantineShape } from "./api.ts";
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
    ...eventShape(event, revealed),
    trace,
    digest: revealed ? Buffer.from(digest).toString("hex") : null,
    bytes: raw?.length ?? 0,
    body: bodyShape(raw, revealed),
  };
}

export function listedQuarantined(row: QuarantineRecord): QuarantineShape {
  return { ...quarantineShape(row), digest: null };
}

export function shownQuarantined(row: QuarantineRecord, revealed: boolean): QuarantineDetail {
  const shape = revealed ? quarantineShape(row) : listedQuarantined(row);
  return { ...shape, trace: row.trace, body: bodyShape(row.raw, revealed), revealed };
}
