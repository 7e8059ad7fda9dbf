/** What the routes that show numbers and texts have in common: the audit knows it before anybody sees them. */
import type { ActResult } from "../../inbox/store.ts";
import { refused } from "../answers.ts";
import type { InspectorAnswer } from "../http.ts";
import { refusedBody } from "../input.ts";
import type { Call, Route } from "../route.ts";

interface Revealed {
  readonly path: string;
  /** What `:id` names, in the log's words. */
  readonly subject: "lane" | "quarantine";
  readonly message: string;
  /** For an id that the inbox does not hold. */
  readonly absent: string;
  /** Writes the audit row. */
  reveal(call: Call): Promise<ActResult>;
  show(call: Call): Promise<InspectorAnswer>;
}

export function revealRoute({ path, subject, message, absent, reveal, show }: Revealed): Route {
  return {
    method: "POST",
    path,
    access: "reveal",
    async run(call) {
      const refusal = await refusedBody(call);
      if (refusal !== null) return refusal;
      // First: what somebody saw must be in the audit, also when they saw it in vain.
      const revealed = await reveal(call);
      if (!revealed.ok) return refused("not_found", absent);
      call.logger.info({ by: call.by, [subject]: call.id }, message);
      return show(call);
    },
  };
}
