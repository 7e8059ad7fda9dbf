/** The document's section of what the service sends: five events, and the two headers of a signed one (DLV-4). */
import { KNOWN_EVENT_TYPES, type KnownEventType } from "../../events/types.ts";
import { eventExamples } from "./event-examples.ts";
import { documentedEvents } from "./event-schemas.ts";
import type { Json } from "./json.ts";
import { capitalised, refTo } from "./schemas.ts";

const WHEN: Readonly<Record<KnownEventType, string>> = {
  "message.queued": "A message was queued after a send request",
  "message.sent": "A message has been sent",
  "message.delivery": "A message was delivered",
  "message.failed": "A send failed; ends the message's events",
  "message.inbound": "A customer's message arrived",
};

const ABOUT_OUTBOUND =
  "Goes to the number's delivery override, else to the client's default delivery target when that is enabled. " +
  "`sequence` orders the events of a message: queued 1, sent 2, delivery 3; there can be gaps.";
const ABOUT_INBOUND =
  "Goes to the number's inbound override, else to the client's default inbound target when that is enabled. " +
  "It has neither a sequence nor a top-level messageId.";
const ABOUT_ALL =
  "A failed attempt is repeated after 1, 5, 15 and 60 minutes, so an event can come more than once.\n\n" +
  "Unspecified: method and content type of the request, and which answers besides non-2xx count as failed.";

/** Both or neither: they are there when signing is enabled for the target. */
const SIGNATURE_HEADERS = [
  {
    name: "X-Service-Timestamp",
    in: "header",
    required: false,
    description:
      "Part of what is signed, as the text it is. Unspecified: its unit (epoch milliseconds here) and the accepted skew.",
    schema: { type: "string" },
    example: "1767225600000",
  },
  {
    name: "X-Service-Signature",
    in: "header",
    required: false,
    description:
      "HMAC-SHA256, keyed with the webhook signing secret, over `<X-Service-Timestamp>.<raw body>`. " +
      "Unspecified: its encoding (lower-case hexadecimal here).",
    schema: { type: "string" },
  },
];

export function webhookSection(): Json {
  return Object.fromEntries(KNOWN_EVENT_TYPES.map((eventType) => [eventType, { post: operationOf(eventType) }]));
}

function operationOf(eventType: KnownEventType): Json {
  const about = eventType === "message.inbound" ? ABOUT_INBOUND : ABOUT_OUTBOUND;
  return {
    operationId: `on${capitalised(eventType)}`,
    tags: ["events"],
    summary: WHEN[eventType],
    description: `${about}\n\n${ABOUT_ALL}`,
    // The signature stands in for credentials.
    security: [],
    parameters: SIGNATURE_HEADERS,
    requestBody: {
      required: true,
      content: {
        "application/json": { schema: refTo(documentedEvents[eventType]), example: eventExamples[eventType] },
      },
    },
    responses: {
      "2XX": { description: "The receiver has durably accepted the event." },
      "4XX": { description: "Not accepted, such as for a bad signature; the attempt counts as failed." },
      "5XX": { description: "Not accepted; the attempt counts as failed." },
    },
  };
}
