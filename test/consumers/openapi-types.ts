/**
 * The types that openapi-typescript makes of docs/openapi.json, held against ours. The gate "openapi" generates and compiles them;
 * no test runs this file.
 */
import type { components, operations, webhooks } from "../../.build/openapi/types.ts";
import type { PhoneNumber } from "../../src/messaging/emulator/state/records.ts";
import type { EventByType, KnownEvent, KnownEventType } from "../../src/sources/messaging/types.ts";

type Schemas = components["schemas"];

/** The named fields only, and mutable: generated answers are open by an index signature, and ours are read-only. */
type Closed<T> = T extends string
  ? T
  : T extends readonly (infer Element)[]
    ? Closed<Element>[]
    : T extends object
      ? {
          -readonly [K in keyof T as string extends K ? never : number extends K ? never : K]: Closed<
            Exclude<T[K], undefined>
          >;
        }
      : T;

/** Each is assignable to the other, so neither has a field, a null or an optional field that the other has not. */
type Same<A, B> = [Closed<A>] extends [Closed<B>] ? ([Closed<B>] extends [Closed<A>] ? SameNames<A, B> : false) : false;
/** A field that is optional on one side and absent on the other is assignable both ways. */
type SameNames<A, B> = [Paths<Closed<A>>] extends [Paths<Closed<B>>]
  ? [Paths<Closed<B>>] extends [Paths<Closed<A>>]
    ? true
    : false
  : false;
type Paths<T> = T extends string | readonly unknown[]
  ? never
  : T extends object
    ? { [K in keyof T & string]-?: K | `${K}.${Paths<T[K]>}` }[keyof T & string]
    : never;

/**
 * The specification has a reference with every message.delivery (EVT-7), so the document promises it. Our receiver takes the event
 * without one too, for an outcome that the specification does not show (EVT-13): of the two, the document says more.
 */
type DocumentedDelivery = EventByType["message.delivery"] & { readonly data: { readonly providerMessageRef: string } };
type DocumentedEvent = Exclude<KnownEvent, EventByType["message.delivery"]> | DocumentedDelivery;

true satisfies Same<Schemas["MessageQueuedEvent"], EventByType["message.queued"]>;
true satisfies Same<Schemas["MessageSentEvent"], EventByType["message.sent"]>;
true satisfies Same<Schemas["MessageDeliveryEvent"], DocumentedDelivery>;
true satisfies Same<Schemas["MessageFailedEvent"], EventByType["message.failed"]>;
true satisfies Same<Schemas["MessageInboundEvent"], EventByType["message.inbound"]>;

/** The section of webhooks has our event types, and each its own event. */
true satisfies Same<{ [Type in keyof webhooks]: Type }, { [Type in KnownEventType]: Type }>;
type Sent = {
  [Type in KnownEventType]: webhooks[Type]["post"]["requestBody"]["content"]["application/json"];
}[KnownEventType];
true satisfies Same<Sent, DocumentedEvent>;

type Answer<Operation extends keyof operations, Status> = operations[Operation]["responses"] extends infer Responses
  ? Status extends keyof Responses
    ? Responses[Status] extends { content: { "application/json": infer Body } }
      ? Body
      : never
    : never
  : never;

/** One way only: in an answer a number's nullable fields can be absent (NUM-6), in the emulator's state they are null. */
true satisfies Closed<Omit<PhoneNumber, "apiClientId">> extends Closed<Schemas["Number"]> ? true : false;
true satisfies Same<Answer<"listNumbers", 200>, { numbers: Schemas["Number"][] }>;
true satisfies Same<Answer<"updateNumber", 200>, { number: Schemas["Number"] | null }>;
true satisfies Same<Answer<"updateNumber", 403>, Schemas["CoreError"]>;
true satisfies Same<Answer<"issueToken", 401>, Schemas["OAuthError"]>;
