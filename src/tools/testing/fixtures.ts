/** Events as the service sends them, for tests of handlers. Deterministic: the same call gives the same event. */

import { refuseUnknownOptions } from "../../internal/options.ts";
import type {
  EventByType,
  KnownEventType,
  MessageDeliveryEvent,
  MessageFailedEvent,
  MessageInboundEvent,
  MessageQueuedEvent,
  MessageSentEvent,
} from "../../sources/messaging/types.ts";
import { sourceFixtures } from "./source-requests.ts";

/** The options of a fixture; the rest is fixed. A misspelled option is refused: the test would use another event than intended. */
export interface FixtureOptions {
  /** The API client of the event. */
  readonly apiClientId?: string;
  /** The message of the event. */
  readonly messageId?: string;
  /** When it happened, epoch milliseconds. Default: a fixed time, the same for each. */
  readonly occurredAt?: number;
  /** Outbound events only. Default: the usual position of its type (EVT-8). */
  readonly sequence?: number;
  /** Merged into `data`. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Options of `fixtures.inbound`, whose event has no sequence. */
export type InboundFixtureOptions = Omit<FixtureOptions, "sequence">;

/** Options of `fixtures.unknown`, whose event has a top-level `messageId` and a `sequence` only if they are given. */
export interface UnknownFixtureOptions extends FixtureOptions {
  /** Default `message.read`. */
  readonly eventType?: string;
}

const INBOUND_OPTIONS = ["apiClientId", "messageId", "occurredAt", "data"] as const satisfies (keyof FixtureOptions)[];
const OPTIONS = [...INBOUND_OPTIONS, "sequence"] as const satisfies (keyof FixtureOptions)[];

const DEFAULTS = { apiClientId: "apc_1", messageId: "msg_000001", occurredAt: 1_760_000_000_000 } as const;
/** Numbers of the range reserved for fiction. */
const OURS = "+14155550100";
const THEIRS = "+14155550101";

function outbound(
  type: KnownEventType,
  sequence: number,
  status: string,
  options: FixtureOptions,
  extra: object = {},
): object {
  refuseUnknownOptions(`fixtures.${type.replace("message.", "")}()`, options, OPTIONS);
  const { apiClientId, messageId, occurredAt } = { ...DEFAULTS, ...options };
  const data = {
    messageId,
    externalReference: "order-1",
    sendFrom: OURS,
    to: THEIRS,
    status,
    error: null,
    ...extra,
    ...options.data,
  };
  return {
    eventType: type,
    direction: "outbound",
    occurredAt,
    apiClientId,
    messageId,
    sequence: options.sequence ?? sequence,
    data,
  };
}

const failure = { code: "PROVIDER_SEND_FAILED", message: "The provider refused the message.", details: {} };

/** Of the messaging service. */
export const serviceFixtures = {
  queued: (options: FixtureOptions = {}) => outbound("message.queued", 1, "QUEUED", options) as MessageQueuedEvent,
  sent: (options: FixtureOptions = {}) => outbound("message.sent", 2, "sent", options) as MessageSentEvent,
  delivery: (options: FixtureOptions = {}) =>
    outbound("message.delivery", 3, "delivered", options, { providerMessageRef: "prov_1" }) as MessageDeliveryEvent,
  failed: (options: FixtureOptions = {}) =>
    outbound("message.failed", 4, "failed", options, { error: failure }) as MessageFailedEvent,
  inbound(options: InboundFixtureOptions = {}): MessageInboundEvent {
    refuseUnknownOptions("fixtures.inbound()", options, INBOUND_OPTIONS);
    const { apiClientId, messageId, occurredAt } = { ...DEFAULTS, messageId: "msg_in_000001", ...options };
    const data = {
      messageId,
      conversationId: "conv_1",
      numberId: "num_1",
      from: THEIRS,
      to: OURS,
      body: "Hello",
      media: [],
      timestamp: occurredAt,
    };
    return {
      eventType: "message.inbound",
      direction: "inbound",
      occurredAt,
      apiClientId,
      data: { ...data, ...options.data },
    };
  },
  /** An event of a type that the specification does not list (RCV-11). */
  unknown: (options: UnknownFixtureOptions = {}) => {
    refuseUnknownOptions("fixtures.unknown()", options, [...OPTIONS, "eventType"]);
    const { apiClientId, occurredAt } = { ...DEFAULTS, ...options };
    const { messageId, sequence } = options;
    return {
      eventType: options.eventType ?? "message.read",
      direction: "outbound",
      occurredAt,
      apiClientId,
      data: { ...options.data },
      // An outbound event with both joins its message's events in order.
      ...(messageId === undefined ? {} : { messageId }),
      ...(sequence === undefined ? {} : { sequence }),
    };
  },
} as const satisfies Record<string, (options?: never) => EventByType[KnownEventType] | object>;

/**
 * One function per event type of the messaging service, and one per other source; each returns a fresh object.
 *
 * @throws SetupError `invalid_option` for an unknown option
 */
export const fixtures = { ...serviceFixtures, ...sourceFixtures } as const;
