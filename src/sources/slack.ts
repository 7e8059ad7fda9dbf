/** Slack's events, slash commands and interactions. */
import { sourceOf } from "./define-source.ts";
import type { OpenEvents, Parsed, SourceDefinition, SourceOptions } from "./definition.ts";
import { hmacDefinition } from "./hmac-source.ts";
import { formFields, parseObject, textOf } from "./signatures.ts";
import type { WebhookSource } from "./source.ts";

/** A delivery of the Events API, the fields of a slash command, or the payload of an interaction. */
export interface SlackEvent {
  /** `event_callback` for events, `block_actions` and others for interactions. Slash commands have none. */
  readonly type?: string;
  /** Of the Events API: the same in each retry. */
  readonly event_id?: string;
  /** Epoch seconds. */
  readonly event_time?: number;
  /** Of the Events API. Its fields depend on its type. */
  readonly event?: { readonly type: string; readonly [field: string]: unknown };
  /** Of a slash command: its name with the slash. */
  readonly command?: string;
  readonly [field: string]: unknown;
}

const OPEN_BRACE = 0x7b;

const definition: SourceDefinition<SlackEvent> = {
  ...hmacDefinition<SlackEvent>({
    preset: "slack",
    header: "x-slack-signature",
    prefix: "v0=",
    timestamp: "x-slack-request-timestamp",
    signed: "v0:{timestamp}:{body}",
    identity: "digest",
    answerMs: 3_000,
    // At once, after a minute and after five; with delayed events for a day, each hour.
    lastRetryMs: 25 * 3_600_000,
    shows: ["type", "event_id", "event_time", "team_id", "api_app_id", "event.type", "event.channel", "command"],
  }),
  parse: (body) => (body[0] === OPEN_BRACE ? parseObject(body) : parseFields(body)),
  handshake({ type, challenge, ssl_check: isCheck }) {
    if (type === "url_verification") return { body: textOf(challenge) ?? "" };
    return isCheck === "1" ? {} : null;
  },
  place({ type, event, command, event_id: id, event_time: time }, { digest }) {
    return {
      type: textOf(command) ?? textOf(event?.type) ?? textOf(type) ?? "unknown",
      // A command or an interaction is not sent again; its body has ids of its own.
      id: textOf(id) ?? digest(),
      reference: textOf(id),
      occurredAt: Number.isSafeInteger(time) ? (time as number) * 1000 : null,
    };
  },
  // Slack shows the body of an answer to a command: none means that nothing is shown.
  accepted: {},
};

/** A slash command's fields, or an interaction's JSON in its field `payload`. */
function parseFields(body: Uint8Array): Parsed<SlackEvent> {
  const fields = Object.entries(formFields(body) ?? {});
  const isWrong = fields.length === 0 || fields.some(([, value]) => typeof value !== "string");
  if (isWrong) return { ok: false, code: "invalid_form" };
  const event: SlackEvent = Object.fromEntries(fields);
  return typeof event.payload === "string" ? parseObject(Buffer.from(event.payload)) : { ok: true, event };
}

/**
 * Receives Slack's Events API, slash commands and interactions. The time and the body are signed. The identity of an event is its `event_id`;
 * that of a command or an interaction is the body's digest. `on()` takes the type of the inner event (`app_mention`), the command with its
 * slash (`/deploy`), or the type of the interaction (`block_actions`). Each is by itself. `url_verification` is answered once its signature
 * matches. `secrets` is the app's signing secret.
 *
 * @typeParam Event - what handlers receive
 * @throws SetupError for a wrong option or secret
 * @example
 * const receiver = createReceiver({ source: slack({ secrets: process.env.SLACK_SIGNING_SECRET ?? "" }), store });
 * receiver.on("app_mention", ({ event }) => reply(event));
 * receiver.on("/deploy", ({ response_url: url }) => deploy(String(url)));
 */
export function slack<Event extends object = SlackEvent>(
  options: SourceOptions<Event>,
): WebhookSource<OpenEvents<Event>> {
  // The application's type describes what the definition reads.
  return sourceOf(definition, options as unknown as SourceOptions<SlackEvent>);
}
