/** Acts on one event, message or quarantined body. Each is written to the audit and to the log. */
import { explained, placeFields } from "../../inbox/masking.ts";
import type { ActResult } from "../../inbox/store.ts";
import type { Logger } from "../../internal/logger.ts";
import { actAnswer } from "../../receiver/bulk-order.ts";
import { jsonAnswer } from "../http.ts";
import { refusedBody } from "../input.ts";
import type { ApiCall, ApiRoute } from "../route.ts";

export const actRoutes: readonly ApiRoute[] = [
  act("events/:id/replay", "event", ({ inbox, id, by }) => inbox.replay(id, { by })),
  act("events/:id/discard", "event", ({ inbox, id, by }) => inbox.discard(id, { by })),
  act("messages/:id/unblock", "lane", ({ inbox, id, by }) => inbox.unblock(id, { by })),
  act("messages/:id/release", "lane", ({ inbox, id, by }) => inbox.releaseGap(id, { by })),
  act("quarantine/:id/replay", "quarantine", ({ inbox, id, by }) => inbox.replayQuarantined(id, { by })),
  act("quarantine/:id/discard", "quarantine", ({ inbox, id, by }) => inbox.discardQuarantined(id, { by })),
];

/** `subject` says what `:id` of the path names. */
function act(path: string, subject: ActSubject, run: (call: ApiCall) => Promise<ActResult>): ApiRoute {
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
        const said = "An act failed in the inspector; the inbox's audit says whether it was done.";
        logger.warn({ ...told, ...placeFields(error) }, explained(said, error));
        throw error;
      });
      tellAct(logger, told, answer);
      return jsonAnswer(answer, answer.ok ? 200 : answer.reason === "not_found" ? 404 : 409);
    },
  };
}

/** The name of the log field for what was acted on. */
export type ActSubject = "event" | "lane" | "quarantine";

interface ToldAct extends Readonly<Partial<Record<ActSubject, number>>> {
  readonly act: string;
  readonly by: string;
}

type CameTo = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Logs one act: who, what, which, and the result. */
export function tellAct(logger: Logger, told: ToldAct, cameTo: CameTo): void {
  const { ok } = cameTo;
  if (ok) logger.info({ ...told, ok }, "An act was done in the inspector.");
  else logger.info({ ...told, ok, reason: cameTo.reason }, "An act was refused in the inspector.");
}
