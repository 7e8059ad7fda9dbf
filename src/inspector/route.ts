/** What a route of the inspector's JSON API is, and what it is given. */
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { InboxOperator } from "../receiver/operator.ts";
import type { Access } from "./api.ts";
import type { InspectorAnswer, JsonReading } from "./http.ts";
import type { Watch } from "./watch.ts";

/** A POST changes something or carries a filter that may name somebody; it needs the CSRF header. */
export interface Route {
  readonly method: "GET" | "POST";
  /** Below `api/`, with `:id` where a number is: `messages/:id/reveal`. */
  readonly path: string;
  readonly access: Access;
  run(call: Call): Promise<InspectorAnswer> | InspectorAnswer;
}

/** One call of a route by somebody who may make it. */
export interface Call {
  readonly inbox: InboxOperator;
  readonly watch: Watch;
  readonly clock: Clock;
  /** Each act and reveal is told to it: who, what, which. */
  readonly logger: Logger;
  readonly access: Access;
  readonly by: string;
  /** That of `:id`; 0 where the path has none. */
  readonly id: number;
  readonly query: URLSearchParams;
  /** At most 64 KiB. */
  readJson(): Promise<JsonReading>;
  /** Asks `authorize` again: what the same request may do by now. */
  reauthorize(): Promise<Access | false>;
  /** Aborts when whoever asked is gone, and when the inspector is closed. */
  readonly signal: AbortSignal;
}
