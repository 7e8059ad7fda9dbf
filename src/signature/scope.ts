/** What a secret may vouch for, as a text that can be stored and shown: directions, and API clients by their digest. */
import { createHash } from "node:crypto";
import type { Grant, Voucher } from "./keyring.ts";
import { covers, type VouchedFields } from "./match.ts";

type Constraint = Pick<Grant, "direction" | "apiClientId">;

const DIRECTIONS = { any: undefined, inbound: "inbound", delivery: "outbound" } as const;
const PART = /^(any|inbound|delivery)(?::([0-9a-f]{32}))?$/;

/** `any`, `inbound` or `delivery`, each with `:` and a digest for a secret of one API client; alternatives are joined by commas. */
export function scopeOf({ grants }: Voucher): string {
  return [...new Set(grants.map(partOf))].join(",");
}

/** As `vouchesFor`, from the stored text. A text that is none covers nothing. */
export function scopeCovers(scope: string, event: VouchedFields): boolean {
  const { apiClientId } = event;
  const claimed = typeof apiClientId === "string" ? { ...event, apiClientId: digestOf(apiClientId) } : event;
  return scope.split(",").some((part) => {
    const constraint = constraintOf(part);
    return constraint !== null && covers(constraint, claimed);
  });
}

function partOf({ direction, apiClientId }: Constraint): string {
  const kind = direction === undefined ? "any" : direction === "inbound" ? "inbound" : "delivery";
  return apiClientId === undefined ? kind : `${kind}:${digestOf(apiClientId)}`;
}

function constraintOf(part: string): Constraint | null {
  const [, kind, apiClientId] = PART.exec(part) ?? [];
  return kind === undefined ? null : { direction: DIRECTIONS[kind as keyof typeof DIRECTIONS], apiClientId };
}

/** The id itself belongs to the application: an operator's view or log need not show it. */
function digestOf(apiClientId: string): string {
  return createHash("sha256").update(apiClientId).digest("hex").slice(0, 32);
}
