/** The sources of a programme's inbox: the messaging service, and one for each order that lanes of other sources have. */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { LaneOrder } from "../../src/inbox/record.ts";
import type { HandlerContext, KnownEvent } from "../../src/index.ts";
import {
  github,
  type ServiceOptions,
  type SourceEvents,
  service,
  stripe,
  type WebhookSource,
} from "../../src/sources/index.ts";
import { type SourceRequestOptions, TEST_SECRET, TEST_SECRETS } from "../../src/tools/testing/index.ts";
import { documentedIdentity } from "./history.ts";

/**
 * - `code`: pushes to GitHub, each by itself.
 * - `builds`: pushes to GitHub, those of a branch in the order of arrival.
 * - `billing`: events of Stripe, those of an object by position.
 * - `held`: the same, always with `HOLD_BACK_MS`.
 */
export type OtherSource = "code" | "builds" | "billing" | "held";

const HOLD_BACK_MS = 300;

/** The entries of the receivers. */
export type SourceName = "messages" | OtherSource;

export interface SourcesOptions extends Omit<ServiceOptions, "secrets"> {
  /** Of `billing`. */
  readonly holdBackMs?: number;
  /** The filter of the sources whose lanes have an order. Default: none. */
  readonly wants?: ((source: SourceName, event: object) => boolean) | undefined;
}

/** For the receiver of a process that has these. */
export function sourcesFor(names: readonly SourceName[], { holdBackMs = 0, wants, ...options }: SourcesOptions) {
  const filtered = (source: SourceName) => wants && { filter: (event: object) => wants(source, event) };
  const secrets = TEST_SECRETS.github;
  const all: Record<SourceName, WebhookSource<SourceEvents>> = {
    messages: service({ ...options, ...filtered("messages"), secrets: TEST_SECRET }),
    code: github({ secrets }),
    builds: github({ secrets, lane: ({ ref }) => `${ref}`, ...filtered("builds") }),
    billing: stripe({ secrets: TEST_SECRETS.stripe, holdBackMs, ...filtered("billing") }),
    held: stripe({ secrets: TEST_SECRETS.stripe, holdBackMs: HOLD_BACK_MS }),
  };
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

export const isOfStripe = (source: SourceName) => source === "billing" || source === "held";

/** As `ctx.identity`. Stripe's events have an id; the digest of its body identifies a push. */
export function otherIdentity(source: OtherSource, body: Uint8Array | string): string {
  const ownId = isOfStripe(source) ? String(eventIn(body).id) : digestOf(body);
  return documentedIdentity({ ...byItself(source, null), ownId, eventType: "" });
}

/** The same of an event of the messaging service. */
export function serviceIdentity(event: KnownEvent): string {
  const { apiClientId: tenant, eventType, data } = event;
  if (event.direction === "inbound")
    return documentedIdentity({ ...byItself("messages", tenant), ownId: data.messageId, eventType });
  const { messageId: name, sequence } = event;
  const lane = { source: "messages", tenant, name, order: "sequence" } as const;
  return documentedIdentity({ lane, ownId: null, sequence, eventType });
}

function byItself(source: SourceName, tenant: string | null) {
  return { lane: { source, tenant, name: null, order: null }, sequence: 0 };
}

const ORDERS = { messages: "sequence", code: null, builds: "arrival", billing: "position", held: "position" } as const;

/** The order of a lane. @param name - null for an event by itself */
export function orderOf(source: SourceName, name: string | null): LaneOrder | null {
  return name === null ? null : ORDERS[source];
}

/** How a push is delivered: copy 0 as it was sent, the others as one who captured the body sends it, under another id and type. */
export function pushDelivery(body: Uint8Array | string, copy: number): SourceRequestOptions {
  const type = copy === 0 ? "push" : "invented";
  return { source: "github", id: `${digestOf(body).slice(0, 12)}-${copy}`, type };
}

/** What is wrong with an event that a handler of `source` receives: it is another source's, or other than it was sent. */
export function wrongEvent<Tx>(source: SourceName, event: object, ctx: HandlerContext<Tx>): string | null {
  const { meta, rawBody, identity } = ctx;
  const name = `${meta.lane ?? meta.id ?? identity} ${meta.sequence}`;
  if (meta.source !== source) return `${name} of ${meta.source} was passed to the handler of ${source}`;
  if (source === "messages") return null;
  const isBody = identity === otherIdentity(source, rawBody) && isDeepStrictEqual(event, eventIn(rawBody));
  if (isBody && (isOfStripe(source) || isAsDelivered(ctx))) return null;
  return `${name} reached its handler with ${isBody ? "other headers" : "another body or identity"} than it was sent with`;
}

function isAsDelivered<Tx>(ctx: HandlerContext<Tx>): boolean {
  const { meta, rawBody } = ctx;
  const [id = "", type] = ["x-github-delivery", "x-github-event"].map((name) => ctx.header(name));
  const sent = pushDelivery(rawBody, Number(id.split("-")[1]));
  return id === sent.id && type === sent.type && type === meta.eventType;
}

function eventIn(body: Uint8Array | string): { readonly id?: unknown } {
  return JSON.parse(String(Buffer.from(body)));
}

function digestOf(body: Uint8Array | string): string {
  return createHash("sha256").update(body).digest("hex");
}
