/** Routes for the emulator as a whole: health, state, clock, the event stream and the API's description. */
import { z } from "zod";
import { openApiDocument } from "../../openapi/document.ts";
import type { StateExport } from "../control.ts";
import { type ControlContext, controlRoute } from "../control-route.ts";
import { stateSchema } from "../transfer.ts";

/** An export grows with `keep`; Node's longest text is about twice as much. */
const MAX_STATE_BYTES = 256 * 1_048_576;

const clockSchema = z.strictObject({
  /** The emulator's time, epoch ms. */
  now: z.int(),
  /** Emulator milliseconds per real one; 0 while time moves only on request. */
  rate: z.number(),
  /** Messages' steps and attempts that wait for their time. */
  waiting: z.int(),
});

function clockView({ service: { time, scheduler } }: ControlContext): z.output<typeof clockSchema> {
  return { now: time.now(), rate: time.rate, waiting: scheduler.waiting };
}

export const wholeRoutes = [
  controlRoute({
    method: "GET",
    path: "/health",
    summary: "Whether the emulator answers",
    answer: z.strictObject({ status: z.literal("ok"), now: z.int() }),
    handle: ({ service }) => ({ status: "ok", now: service.time.now() }),
  }),
  controlRoute({
    method: "GET",
    path: "/state",
    summary: "The whole state, with its secrets",
    answer: stateSchema,
    handle: ({ control }) => control.exportState(),
  }),
  controlRoute({
    method: "POST",
    path: "/state",
    summary: "Puts an exported state in the place of this one",
    body: z.looseObject({}),
    maxBodyBytes: MAX_STATE_BYTES,
    answer: clockSchema,
    handle(call) {
      // Checked by the control itself, record by record.
      call.control.importState(call.body as unknown as StateExport);
      return clockView(call);
    },
  }),
  controlRoute({
    method: "POST",
    path: "/reset",
    summary: "Back to the seed data; the clock stays where it is",
    answer: clockSchema,
    handle(call) {
      call.control.reset();
      return clockView(call);
    },
  }),
  controlRoute({ method: "GET", path: "/clock", summary: "The time", answer: clockSchema, handle: clockView }),
  controlRoute({
    method: "POST",
    path: "/clock",
    summary: "Moves time on; answers when all that came due has happened and every attempt has ended",
    body: z.strictObject({ advanceMs: z.number() }),
    answer: clockSchema,
    async handle(call) {
      await call.clock.advance(call.body.advanceMs);
      return clockView(call);
    },
  }),
  controlRoute({
    method: "GET",
    path: "/stream",
    summary: "All that happens from now on, as server-sent events",
    handle: ({ streams }) => streams.open(),
  }),
  controlRoute({
    method: "GET",
    path: "/openapi.json",
    summary: "The description of the service's API",
    handle: ({ baseUrl }) => openApiDocument(baseUrl),
  }),
];
