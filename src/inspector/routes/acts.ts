/** Acts on one event, message or quarantined body, each told to the audit and to the log. */
import { explained, placeFields } from "../../inbox/masking.ts";
import type { ActResult } from "../../inbox/store.ts";
import type { Logger } from "../../internal/logger.ts";
import { actAnswer } from "../../receiver/bulk-order.ts";
import { json } from "../http.ts";
import { refusedBody } from "../input.ts";
import type { Call, Route } from "../route.ts";

export const actRoutes: readonly Route[] = [
  act("events/:id/replay", "event", ({ inbox, id, by }) => inbox.replay(id, { by })),
  act("events/:id/discard", "event", ({ inbox, id, by }) => inbox.discard(id, { by })),
  act("messages/:id/unblock", "lane", ({ inbox, id, by }) => inbox.unblock(id, { by })),
  act("messages/:id/release", "lane", ({ inbox, id, by }) => inbox.releaseGap(id, { by })),
  act("quarantine/:id/replay", "quarantine", ({ inbox, id, by }) => inbox.replayQuarantined(id, { by })),
  act("quarantine/:id/discard", "quarantine", ({ inbox, id, by }) => inbox.discardQuarantined(id, { by })),
];

/** `subject` is what `:id` of the path names. */
function act(path: string, subject: Subject, run: (call: Call) => Promise<ActResult>): Route {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return {
    method: "POST",
    path,
    access: "act",
    async run(call) {
      const refusal = await refusedBody(call);
      if (refusal !== null) return refusal;
      const { logger, by, id } = call;
      const told = { act: name, by, [subject]: id };
      const answer = await actAnswer(() => run(call)).catch((error: unknown) => {
        const said = "An act failed in the inspector; the inbox's audit tells whether it was done.";
        logger.warn({ ...told, ...placeFields(error) }, explained(said, error));
        throw error;
      });
      tellAct(logger, told, answer);
      return json(answer, answer.ok ? 200 : answer.reason === "not_found" ? 404 : 409);
    },
  };
}

// The logger's line for one act of the inspector: who, what, which, and what came of it.

/** What an act is done on, in the log's words. */
export type Subject = "event" | "lane" | "quarantine";

interface ToldAct extends Readonly<Partial<Record<Subject, number>>> {
  readonly act: string;
  readonly by: string;
}

type CameTo = { readonly ok: true } | { readonly ok: false; readonly reason: string };

export function tellAct(logger: Logger, told: ToldAct, cameTo: CameTo): void {
  const { ok } = cameTo;
  if (ok) logger.info({ ...told, ok }, "An act was done in the inspector.");
  else logger.info({ ...told, ok, reason: cameTo.reason }, "An act was refused in the inspector.");
}
