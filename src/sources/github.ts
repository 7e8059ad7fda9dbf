/** GitHub's webhooks. */
import { choiceOption } from "../internal/options.ts";
import { sourceOf } from "./define-source.ts";
import type { OpenEvents, Parsed, SourceDefinition, SourceOptions, Verdict } from "./definition.ts";
import { MALFORMED, parseObject, signatureBytes, signedBy } from "./signatures.ts";
import type { WebhookSource } from "./source.ts";

/** A payload, whose fields depend on its type. Pass a map of your own, or `EventPayloadMap` of `@octokit/webhooks-types`. */
export interface GitHubEvent {
  readonly action?: string;
  readonly [field: string]: unknown;
}

export interface GitHubOptions<Event extends object = GitHubEvent> extends SourceOptions<Event> {
  /**
   * What makes two deliveries the same event. `"body"` (default): the body, which is signed. `"id"`: the header `X-GitHub-Delivery`, which is
   * not: a captured body can be handled again under another id, and an event can be suppressed by a body that came under its id.
   */
  readonly repeats?: "body" | "id";
}

const SIGNATURE = "x-hub-signature-256";
const DELIVERY = "x-github-delivery";
const TYPE = "x-github-event";
const FORM = Buffer.from("payload=");
const PREFIX = "sha256=";

const definitionFor = (repeats: "body" | "id"): SourceDefinition<GitHubEvent> => ({
  preset: "github",
  maxBodyBytes: 25 * 1024 * 1024,
  // It never sends again by itself; a person can, for three days.
  lastRetryMs: 3 * 86_400_000,
  keep: [
    TYPE,
    DELIVERY,
    "x-github-hook-id",
    "x-github-hook-installation-target-type",
    "x-github-hook-installation-target-id",
  ],
  shows: [
    ...[
      "action",
      "number",
      "hook_id",
      "installation.id",
      "organization.id",
      "repository.id",
      "sender.id",
      "issue.number",
    ],
    ...["pull_request.number", "check_run.id", "workflow_run.id", "deployment.id", "release.id"],
  ],
  signedBy: [[SIGNATURE]],
  verify(head, body, keys): Verdict {
    const header = head.header(SIGNATURE) ?? "";
    const signature = header.startsWith(PREFIX) ? signatureBytes(header.slice(PREFIX.length), "hex", 32) : null;
    if (signature === null) return MALFORMED;
    return signedBy(keys, signature, "sha256", [body], null);
  },
  parse: parsePayload,
  place(event, { digest }, kept) {
    const delivery = kept.header(DELIVERY);
    const id = repeats === "id" && delivery !== undefined ? `id:${delivery}` : bodyId(event, digest(), delivery);
    return { type: kept.header(TYPE) ?? "unknown", id, reference: delivery };
  },
});

/**
 * Receives GitHub's webhooks. Only the body is signed. So the body is the identity; the delivery's id is a reference to search by, and the
 * type, from the header `X-GitHub-Event`, is what the sender says it is: check the fields that you use. Each event is by itself; with the
 * option `lane`, those of a lane are handled in the order of arrival.
 *
 * @typeParam ByType - the payload of each type, such as `EventPayloadMap` of `@octokit/webhooks-types`
 * @throws SetupError for a wrong option or secret
 * @example
 * const receiver = createReceiver({ source: github<EventPayloadMap>({ secrets: process.env.GITHUB_WEBHOOK_SECRET ?? "" }), store });
 * receiver.on("push", (event) => build(event.after));
 */
export function github<ByType extends object = Readonly<Record<string, GitHubEvent>>>(
  options: GitHubOptions<ByType[keyof ByType] & object>,
): WebhookSource<OpenEvents<ByType[keyof ByType] & object, ByType>> {
  const { repeats, ...rest } = options;
  const definition = definitionFor(choiceOption("repeats", repeats, "body", ["body", "id"]));
  // The application's type describes what the definition reads.
  return sourceOf(definition, rest as unknown as SourceOptions<GitHubEvent>, { options: ["repeats"] });
}

/** JSON, or a form with the JSON in its field `payload`. */
function parsePayload(body: Uint8Array): Parsed<GitHubEvent> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!bytes.subarray(0, FORM.length).equals(FORM)) return parseObject(body);
  const payload = new URLSearchParams(bytes.toString()).get("payload");
  return payload === null ? { ok: false, code: "invalid_form" } : parseObject(Buffer.from(payload));
}

/** Fields by which payloads without an id and a time are recognised: two that mean different things can be equal. */
const TIMELESS: readonly (readonly string[])[] = [
  // ping, workflow_dispatch, repository_dispatch
  ["zen", "hook_id"],
  ["inputs", "workflow", "ref"],
  ["client_payload", "branch"],
  // membership, organization, org_block
  ["scope", "member", "team"],
  ["membership", "organization"],
  ["blocked_user"],
];

function bodyId(event: GitHubEvent, digest: string, delivery: string | undefined): string {
  return isWithoutIdAndTime(event) && delivery !== undefined ? `${digest}:${delivery}` : digest;
}

/** The header with the type is not signed, so the fields decide. */
function isWithoutIdAndTime(event: GitHubEvent): boolean {
  return TIMELESS.some((names) => names.every((name) => Object.hasOwn(event, name)));
}
