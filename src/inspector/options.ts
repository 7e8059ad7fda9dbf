/** What an inspector is made of. */
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { InboxOperator } from "../receiver/operator.ts";
import type { Access } from "./api.ts";

/** What somebody may do, and who it is; `false` for nothing. */
export type Grant = Access | { readonly access: Access; readonly by: string } | false;

/**
 * @typeParam Request - the framework's own request
 */
export interface InspectorOptions<Request = unknown> {
  /** `receiver.inbox`, or what `openInbox` gives. The inspector does not close it. */
  readonly inbox: InboxOperator;
  /**
   * Says what whoever sent a request may do: `"read"`, `"act"` (and read), `"reveal"` (and act), or `false`; with `{ access, by }` also
   * who it is, for the audit. Asked for each request, and every minute for the live stream. What it throws denies.
   */
  readonly authorize: (request: Request) => Grant | Promise<Grant>;
  /** Where browsers open it: `["https://ops.example.com"]`. A request with another Host or Origin is refused. At least one. */
  readonly origins: readonly string[];
  /** Where it is mounted, as browsers ask for it. Default `"/inspector"`; `"/"` for the root. */
  readonly path?: string;
  /** Default: warnings and errors to standard error. Acts and reveals are told at level info. */
  readonly logger?: Logger;
  /** For tests: `createFakeClock()` of `oncehook/testing`. */
  readonly clock?: Clock;
}
