/** Events of a second source in a programme's inbox: pushes to GitHub, under the entry `code`. A signed body names each, and no header does. */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { entryNameOf, identityOf } from "../../src/inbox/lane-key.ts";
import type { HandlerContext } from "../../src/index.ts";
import {
  github,
  type ServiceOptions,
  type SourceEvents,
  service,
  type WebhookSource,
} from "../../src/presets/index.ts";
import { type SourceRequestOptions, TEST_SECRET, TEST_SECRETS } from "../../src/testing/index.ts";

/** The entries of the receivers: the messaging service, and GitHub. */
export type SourceName = "messages" | "code";

/** For the receiver of a process that has these. */
export function sourcesFor(names: readonly SourceName[], options: Omit<ServiceOptions, "secrets">) {
  const all: Record<SourceName, WebhookSource<SourceEvents>> = {
    messages: service({ ...options, secrets: TEST_SECRET }),
    code: github({ secrets: TEST_SECRETS.github }),
  };
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

export function pushIdentity(body: Uint8Array | string): string {
  return identityOf({ apiClientId: "code", tag: "single", messageId: digestOf(body) }, 0, "");
}

/** How a push is delivered: copy 0 as it was sent, the others as one who captured the body sends it, under another id and type. */
export function pushDelivery(body: Uint8Array | string, copy: number): SourceRequestOptions {
  const type = copy === 0 ? "push" : "invented";
  return { source: "github", id: `${digestOf(body).slice(0, 12)}-${copy}`, type };
}

/** What is wrong with an event that a handler of `source` receives: it is another source's, or a push other than it was sent. */
export function wrongEvent<Tx>(source: SourceName, event: object, ctx: HandlerContext<Tx>): string | null {
  const { meta, rawBody, identity } = ctx;
  const name = `${meta.lane.messageId} ${meta.sequence}`;
  const own = entryNameOf(meta.lane) ?? "messages";
  if (own !== source) return `${name} of ${own} was passed to the handler of ${source}`;
  if (source === "messages") return null;
  const [id = "", type] = ["x-github-delivery", "x-github-event"].map((header) => ctx.header(header));
  const sent = pushDelivery(rawBody, Number(id.split("-")[1]));
  const isBody =
    identity === pushIdentity(rawBody) && isDeepStrictEqual(event, JSON.parse(String(Buffer.from(rawBody))));
  const isHeaders = id === sent.id && type === sent.type && type === meta.eventType;
  if (isBody && isHeaders) return null;
  return `${name} reached its handler with ${isBody ? "other headers" : "another body or identity"} than it was sent with`;
}

export function digestOf(body: Uint8Array | string): string {
  return createHash("sha256").update(body).digest("hex");
}
