/** What the service's API takes and gives, field by field as the specification writes it. */

export type { WebhookKind } from "../../sources/messaging/webhook-kind.ts";

/** The caller, and what it has. */
export interface Whoami {
  readonly apiClientId: string;
  readonly apiClientName: string;
  /** `ACTIVE` is the value of a usable client; other values are not shown. */
  readonly apiClientStatus: string;
  /** Seen: `numbers:read`, `numbers:search`, `numbers:update`. None is known that allows or forbids sending (WHO-2). */
  readonly capabilities: readonly string[];
  readonly assignedNumbers: {
    readonly total: number;
    readonly smsEnabledCount: number;
    readonly mmsEnabledCount: number;
  };
  /** At least one number has its own inbound target; the default alone does not set it (WHO-4, WHO-6). */
  readonly inboundWebhookConfigured: boolean;
  /** At least one number has its own delivery target; the default alone does not set it (WHO-5, WHO-6). */
  readonly deliveryWebhookConfigured: boolean;
}

/** The default configuration of one webhook kind. */
export interface WebhookConfig {
  /** Opaque: its values are not shown (WHK-15). */
  readonly eventClass: string;
  /** `API_CLIENT_DEFAULT`. */
  readonly scope: string;
  readonly enabled: boolean;
  readonly signingEnabled: boolean;
  readonly hasCurrentSecret: boolean;
  readonly hasPreviousSecret: boolean;
  /** Epoch milliseconds; absent, null or 0 without a previous secret (WHK-16). */
  readonly previousSecretValidUntil?: number | null;
  /** Epoch milliseconds; absent, null or 0 before the first rotation (WHK-16). */
  readonly rotatedAt?: number | null;
  /** In no response table of the specification, so do not count on it (WHK-14). */
  readonly endpointUrl?: string | null;
}

/** A configuration as an update left it. */
export interface UpdatedWebhookConfig extends WebhookConfig {
  /**
   * A secret that the service made, shown here and never again (WHK-13); absent or null without one. Read it by its name: it is not enumerable, so that
   * a logged or serialised result does not tell it.
   */
  readonly generatedSecret?: string | null;
}

/** Both default configurations. */
export interface WebhookDefaults {
  readonly defaults: { readonly inbound: WebhookConfig; readonly delivery: WebhookConfig };
  readonly overridesSummary: { readonly inboundOverrideCount: number; readonly deliveryOverrideCount: number };
}

/** What to change; an absent field stays as it is. */
export interface WebhookUpdate {
  /** An http or https URL; null removes the target. */
  readonly endpointUrl?: string | null | undefined;
  readonly enabled?: boolean | undefined;
  /** Required in every update (WHK-8). */
  readonly signingEnabled: boolean;
  /** Your own signing secret, of at least 16 bytes, as receivers ask for. Without one an update is never retried: a lost answer would lose a generated secret. */
  readonly secret?: string | undefined;
}

/** A number of this client. */
export interface PhoneNumber {
  /** What `sendFrom` takes (SND-2). */
  readonly numberId: string;
  readonly e164: string;
  /** `ACTIVE` is the usable value; others are not shown. */
  readonly status: string;
  /** The spelling of responses; requests write `campaignregId` (NUM-3, UPD-7). Required before the number can send. */
  readonly campaignRegId?: string | null;
  readonly smsEnabled: boolean;
  readonly mmsEnabled: boolean;
  readonly webhookInboundOverride?: string | null;
  readonly webhookDeliveryOverride?: string | null;
}

/** What to change; an absent field stays as it is, null clears (UPD-8, UPD-10). */
export interface NumberUpdate {
  /** The spelling of requests (UPD-7). */
  readonly campaignregId?: string | null | undefined;
  /** The spelling of responses, which the service ignores in a request (CLI-8). */
  readonly campaignRegId?: never;
  readonly smsEnabled?: boolean | undefined;
  readonly mmsEnabled?: boolean | undefined;
  /** An http or https URL. */
  readonly webhookInboundOverride?: string | null | undefined;
  /** An http or https URL. */
  readonly webhookDeliveryOverride?: string | null | undefined;
}

/** Filters of a search; none searches everything (SEA-11). */
export interface NumberSearch {
  readonly npa?: string | undefined;
  /** Needs `npa`. */
  readonly nxx?: string | undefined;
  /** Needs `state`. */
  readonly city?: string | undefined;
  readonly state?: string | undefined;
  readonly zipCode?: string | undefined;
  /** Needs `state`, and is currently rejected by the service all the same (SEA-5). */
  readonly rateCenter?: string | undefined;
}

/** A number that could be had. */
export interface AvailableNumber {
  readonly e164: string;
  readonly nationalDisplay?: string | null;
  readonly city?: string | null;
  readonly state?: string | null;
  readonly rateCenter?: string | null;
}

/** What a search found. */
export interface NumberSearchResult {
  readonly groups: readonly {
    readonly rateCenter: string;
    /** Not necessarily `numbers.length` (SEA-14). */
    readonly count: number;
    readonly numbers: readonly AvailableNumber[];
  }[];
  readonly providerResultCount?: number | null;
  readonly requestedQuantity: number;
}

/** A medium of an MMS; it is in the service's storage already, which has no upload route in the specification (SND-13). */
export interface MediaInput {
  readonly storageKey: string;
  readonly mimeType: string;
  readonly byteLength: number;
  readonly sourceUrl?: string | undefined;
  readonly fileName?: string | undefined;
}

interface SendBase {
  /** The `numberId` of a number, never its E.164 form (SND-2). */
  readonly sendFrom: string;
  /** At least one recipient in E.164 form. Each becomes a message of its own (SND-19). */
  readonly to: readonly string[];
  readonly text?: string | undefined;
  /** Your key for all messages of this send; not empty. Events carry it. */
  readonly externalReference: string;
}

/** A send of an SMS. */
export interface SmsSend extends SendBase {
  readonly messageType: "SMS";
  /** An SMS has none (SND-11). */
  readonly media?: never;
}

/** A send of an MMS. */
export interface MmsSend extends SendBase {
  readonly messageType: "MMS";
  /** At least one (SND-12). */
  readonly media: readonly [MediaInput, ...MediaInput[]];
}

/** A send: an SMS without media, or an MMS with at least one. */
export type SendRequest = SmsSend | MmsSend;

/**
 * A send whose `messageType` is computed, so that the compiler cannot know whether media belong to it. The client looks at that
 * before it makes a request: an SMS has no media, an MMS at least one.
 */
export type ComputedSend<T extends "SMS" | "MMS" = "SMS" | "MMS"> = SendBase & {
  /** Has the type `"SMS" | "MMS"`. Where one of them is certain, use `SendRequest`. */
  readonly messageType: T & (["SMS" | "MMS"] extends [T] ? unknown : never);
  readonly media?: readonly MediaInput[] | undefined;
};

/** An accepted recipient. Accepted means queued, no more; what becomes of it comes by webhook (SND-20). */
export interface AcceptedRecipient {
  readonly to: string;
  readonly messageId: string;
  /** `QUEUED`. */
  readonly status: string;
}

/** A rejected recipient (CLI-9). */
export interface RejectedRecipient {
  /** What was sent, as it was: untrusted text (SND-8). */
  readonly to: string;
  readonly error: {
    /** `INVALID_RECIPIENT` is known. */
    readonly code: string;
    readonly message: string;
    readonly details: Readonly<Record<string, unknown>>;
  };
}

/** What became of a send. */
export interface SendResult {
  readonly results: readonly AcceptedRecipient[];
  /** Rejected recipients are data, not an exception (CLI-9). */
  readonly errors: readonly RejectedRecipient[];
  /** The key it was sent with: the same key and the same request again send nothing twice (SND-17). */
  readonly idempotencyKey: string;
  /** No recipient was accepted. */
  readonly allRejected: boolean;
  /**
   * Returns the result itself when every recipient was accepted.
   *
   * @throws RecipientsRejectedError when at least one was not
   */
  throwIfRejected(): SendResult;
}
