/** Tells the log each act of bulk work, as it tells one that is done alone. */
import type { Logger } from "../../internal/logger.ts";
import { type Subject, tellAct } from "../tell-act.ts";
import type { BulkOrder } from "./order.ts";

const SINGLE: Readonly<Record<BulkOrder["act"], { readonly act: string; readonly subject: Subject }>> = {
  replay: { act: "replay", subject: "event" },
  discard: { act: "discard", subject: "event" },
  unblock: { act: "unblock", subject: "lane" },
  replay_quarantined: { act: "replay", subject: "quarantine" },
  discard_quarantined: { act: "discard", subject: "quarantine" },
};
const DONE = ["replayed", "discarded", "unblocked"];
/** Nothing was tried. */
const LEFT_OUT = "superseded";

export interface Teller {
  readonly logger: Logger;
  readonly by: string;
}

/** Gives what is to be called with the id of each row, and with the count that it went to. A dry run acts on none. */
export function singleActs({ act: bulk, dryRun }: BulkOrder, { logger, by }: Teller) {
  const { act, subject } = SINGLE[bulk];
  return (id: number, end: string): void => {
    if (dryRun || end === LEFT_OUT) return;
    tellAct(logger, { act, by, [subject]: id }, DONE.includes(end) ? { ok: true } : { ok: false, reason: end });
  };
}
