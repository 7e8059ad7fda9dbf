/** What `POST api/bulk` asks for, checked. */
import { isRecord } from "../../internal/type-guards.ts";
import { DISCARDABLE, REPLAYABLE } from "../../receiver/bulk/act-on-all.ts";
import type { BulkQuery } from "../../receiver/bulk/matching.ts";
import { type Checked, checked, type Field, flag, numberBetween, oneOf, rowId, text } from "../input.ts";
import { eventFilter } from "../queries.ts";

interface Common {
  readonly dryRun: boolean;
  readonly ratePerSecond?: number;
}

/** A `BulkRequest` whose query was looked at, too. */
export type BulkOrder = Common &
  (
    | { readonly act: "replay"; readonly query: BulkQuery; readonly upTo?: number; readonly skipSuperseded?: boolean }
    | { readonly act: "discard"; readonly query: BulkQuery; readonly upTo?: number }
    | { readonly act: "unblock" }
    | { readonly act: "replay_quarantined" | "discard_quarantined"; readonly reason?: string; readonly upTo?: number }
  );

type Act = BulkOrder["act"];

type Said = string | number | boolean | object;

const query: Field<object> = { rule: "must be a JSON object", holds: isRecord };
const rate = numberBetween(0.01, 100_000);
const act = oneOf("replay", "discard", "unblock", "replay_quarantined", "discard_quarantined");
const common = { act, dryRun: flag, ratePerSecond: rate };
const FIELDS: Readonly<Record<Act, Readonly<Record<string, Field<Said>>>>> = {
  replay: { ...common, query, upTo: rowId, skipSuperseded: flag },
  discard: { ...common, query, upTo: rowId },
  unblock: common,
  replay_quarantined: { ...common, reason: text, upTo: rowId },
  discard_quarantined: { ...common, reason: text, upTo: rowId },
};

export function bulkOrder(value: unknown): Checked<BulkOrder> {
  const said = isRecord(value) ? value.act : undefined;
  if (!act.holds(said)) return { ok: false, message: `"act" ${act.rule}.` };
  const body = checked<Readonly<Record<string, Said>>>(value, FIELDS[said]);
  if (!body.ok) return body;
  // What changes much must not be begun by what was left out.
  if (body.value.dryRun === undefined) return { ok: false, message: `"dryRun" ${flag.rule}.` };
  if (said === "replay" || said === "discard") {
    if (body.value.query === undefined) return { ok: false, message: `"query" ${query.rule}.` };
    const filter = checked(body.value.query, eventFilter(said === "replay" ? REPLAYABLE : DISCARDABLE));
    if (!filter.ok) return { ok: false, message: `In "query": ${filter.message}` };
  }
  // Each of its fields was looked at.
  return { ok: true, value: body.value as unknown as BulkOrder };
}
