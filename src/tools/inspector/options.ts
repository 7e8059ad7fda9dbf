/** The options of an inspector: documentation, checks and defaults; and the Host headers that belong to its origins. */
import { type Clock, systemClock } from "../../internal/clock.ts";
import { type Logger, loggerOption } from "../../internal/logger.ts";
import { invalidOption, refuseUnknownOptions } from "../../internal/options.ts";
import type { InboxOperator } from "../../receiver/operator.ts";
import type { Access } from "./api.ts";

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** An exact http(s) origin as browsers write it: lower case, no default port; null for anything else. */
export function originOf(text: unknown): string | null {
  if (typeof text !== "string" || !/^https?:\/\/[^\s/?#@\\*]+$/i.test(text) || !URL.canParse(text)) return null;
  return new URL(text).origin;
}

/** The Host headers for `origin`, in lower case: clients may include or omit a default port. */
export function hostsOf(origin: string): readonly string[] {
  const { protocol, hostname, port, host } = new URL(origin);
  return port === "" ? [host, `${hostname}:${DEFAULT_PORTS[protocol]}`] : [host];
}

/** What a viewer may do, and the viewer's name; `false` for nothing. */
export type Grant = Access | { readonly access: Access; readonly by: string } | false;

/**
 * @typeParam Request - the framework's own request
 */
export interface InspectorOptions<Request = unknown> {
  /** `receiver.inbox`, or the result of `openInbox`. The inspector does not close it. */
  readonly inbox: InboxOperator;
  /**
   * Returns what the sender of a request may do: `"read"`, `"act"` (and read), `"reveal"` (and act), or `false`. `{ access, by }` also
   * names the sender, for the audit. It is called for each request, which an open page sends every 2 s, and every minute during bulk work. If it throws, access is denied.
   */
  readonly authorize: (request: Request) => Grant | Promise<Grant>;
  /** Where browsers open it: `["https://ops.example.com"]`, at least one. A request with another Host or Origin is refused. */
  readonly origins: readonly string[];
  /** The path where it is mounted, as browsers see it. Default `"/inspector"`; `"/"` for the root. */
  readonly path?: string;
  /** Default: warnings and errors to standard error. Acts and reveals are logged at level info. */
  readonly logger?: Logger;
  /** For tests: `createFakeClock()` of `oncehook/testing`. */
  readonly clock?: Clock;
}

export interface ResolvedInspector<Request> {
  readonly inbox: InboxOperator;
  readonly authorize: (request: Request) => Grant | Promise<Grant>;
  /** As browsers write them in the header Origin. */
  readonly origins: readonly string[];
  /** Without a slash at its end; empty for the root. */
  readonly path: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

const KNOWN = [
  "inbox",
  "authorize",
  "origins",
  "path",
  "logger",
  "clock",
] as const satisfies readonly (keyof InspectorOptions)[];
const DEFAULT_PATH = "/inspector";
/** A path that needs no encoding in a URL and no escaping in HTML. */
const PLAIN_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)+$/;

/** @throws SetupError naming the option and the fix */
export function resolveInspector<Request>(options: InspectorOptions<Request>): ResolvedInspector<Request> {
  refuseUnknownOptions("createInspector()", options, KNOWN);
  return {
    inbox: inboxOption(options.inbox),
    authorize: authorizeOption(options.authorize),
    origins: originsOption(options.origins),
    path: pathOption(options.path),
    logger: loggerOption(options.logger),
    clock: options.clock ?? systemClock,
  };
}

/** The usual mistakes are a receiver, a store, or the promise of `openInbox`: none of them has both methods. */
function inboxOption(inbox: InboxOperator): InboxOperator {
  if (typeof inbox?.stats === "function" && typeof inbox.groupByError === "function") return inbox;
  throw invalidOption("inbox", "must be an inbox: receiver.inbox, or what openInbox() resolves to", inbox);
}

function authorizeOption<F>(authorize: F): F {
  if (typeof authorize === "function") return authorize;
  const rule =
    'must be a function that says what the sender of a request may do: "read", "act", "reveal" or false. There is no default';
  throw invalidOption("authorize", rule, authorize);
}

function originsOption(origins: readonly string[]): readonly string[] {
  const given: readonly unknown[] = Array.isArray(origins) ? origins : [];
  const known = given.map(originOf).filter((origin) => origin !== null);
  if (known.length > 0 && known.length === given.length) return [...new Set(known)];
  const rule =
    'must list at least one origin, each as browsers show it, such as "https://ops.example.com": no path, no slash at its end, no "*"';
  throw invalidOption("origins", rule, origins);
}

function pathOption(path: unknown): string {
  if (path === undefined) return DEFAULT_PATH;
  if (path === "/") return "";
  if (typeof path === "string" && PLAIN_PATH.test(path)) return path;
  const rule =
    'must be "/", or begin with "/" and have only letters, digits and . _ ~ - in its parts, without a slash at its end';
  throw invalidOption("path", rule, path);
}
