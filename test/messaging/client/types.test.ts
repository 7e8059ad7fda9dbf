/** Most of this file is checked by the compiler: a wrong type fails `tsc`, which includes the tests. */
import { describe, expect, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import { type Operation, RESPONSES } from "../../../src/messaging/client/checks.ts";
import type { BackoffOptions, Call, Client, ClientOptions, SendOptions } from "../../../src/messaging/client/index.ts";
import type {
  AcceptedRecipient,
  MediaInput,
  MmsSend,
  NumberSearch,
  NumberSearchResult,
  NumberUpdate,
  PhoneNumber,
  RejectedRecipient,
  SendRequest,
  SendResult,
  SmsSend,
  UpdatedWebhookConfig,
  WebhookDefaults,
  WebhookUpdate,
  Whoami,
} from "../../../src/messaging/client/types.ts";
import { MEDIUM } from "./operations.ts";

/**
 * The declared fields only, read-only: a loose schema also has an index signature, which the interfaces leave out. JSON holds
 * no undefined, so an optional field of a schema is absent or a value.
 */
type Declared<T> = T extends string
  ? T
  : T extends readonly (infer Element)[]
    ? readonly Declared<Element>[]
    : T extends object
      ? { readonly [Key in keyof T as string extends Key ? never : Key]: Declared<Exclude<T[Key], undefined>> }
      : T;

/** The bodies, made of the public types. */
interface Bodies {
  whoami: Whoami;
  "webhooks.get": WebhookDefaults;
  "webhooks.update": UpdatedWebhookConfig;
  "numbers.list": { numbers: readonly PhoneNumber[] };
  "numbers.search": NumberSearchResult;
  "numbers.update": { number: PhoneNumber | null };
  "messages.send": { results: readonly AcceptedRecipient[]; errors: readonly RejectedRecipient[] };
}
type SchemaBodies = { [Name in Operation]: z.infer<(typeof RESPONSES)[Name]> };

/** Undefined for all that is not needed, as code writes it that has a value or none. */
type Left<T, Needed extends keyof T = never> = { [Name in Exclude<keyof T, Needed>]-?: undefined } & Pick<T, Needed>;

const base = { sendFrom: "num_1", to: ["+14155550123"], externalReference: "order-1" };

describe("the types of answers", () => {
  it("are those of the schemas, field by field, both ways (NUM-3, WHK-14, CLI-8)", () => {
    expectTypeOf<Declared<Bodies>>().toEqualTypeOf<Declared<SchemaBodies>>();
    expect(Object.keys(RESPONSES)).toHaveLength(7);
    expectTypeOf<PhoneNumber>().not.toHaveProperty("campaignregId");
    expectTypeOf<UpdatedWebhookConfig["endpointUrl"]>().toEqualTypeOf<string | null | undefined>();
  });

  it("give all numbers as one list without a cursor, and make a caller look for an updated one (NUM-4, UPD-11)", () => {
    expectTypeOf<Awaited<ReturnType<Client["numbers"]["list"]>>>().toEqualTypeOf<readonly PhoneNumber[]>();
    expectTypeOf<Awaited<ReturnType<Client["numbers"]["update"]>>>().toEqualTypeOf<PhoneNumber | null>();
  });
});

describe("the types of requests", () => {
  it("take an SMS without media, and an MMS with at least one (SND-10, SND-11, SND-12, SND-14)", () => {
    const sms: SendRequest = { ...base, messageType: "SMS" };
    const mms: SendRequest = { ...base, messageType: "MMS", media: [MEDIUM] };
    // @ts-expect-error: an SMS has no media.
    const withMedia: SendRequest = { ...base, messageType: "SMS", media: [MEDIUM] };
    // @ts-expect-error: and no empty list.
    const withNone: SmsSend = { ...base, messageType: "SMS", media: [] };
    // @ts-expect-error: an MMS has media.
    const without: SendRequest = { ...base, messageType: "MMS" };
    // @ts-expect-error: at least one.
    const empty: SendRequest = { ...base, messageType: "MMS", media: [] };
    // @ts-expect-error: capitals.
    const small: SendRequest = { ...base, messageType: "sms" };
    // @ts-expect-error: externalReference is required.
    const nameless: SendRequest = { sendFrom: "num_1", to: [], messageType: "SMS" };
    expectTypeOf([sms, mms, withMedia, withNone, without, empty, small, nameless]).toBeArray();
  });

  it("take a computed messageType, and leave media to the client's own check", () => {
    const send = (media: readonly MediaInput[], client: Client) => {
      const messageType = media.length > 0 ? "MMS" : "SMS";
      return client.messages.send({ ...base, messageType, media: media.length > 0 ? media : undefined });
    };
    const given = (messageType: "SMS" | "MMS", client: Client) => client.messages.send({ ...base, messageType });
    const wrong = (client: Client) => {
      // @ts-expect-error: a type that is known is held to what belongs to it.
      const sms = client.messages.send({ ...base, messageType: "SMS", media: [MEDIUM] });
      // @ts-expect-error: and an MMS too.
      const mms = client.messages.send({ ...base, messageType: "MMS" });
      // @ts-expect-error: not any text.
      const any = client.messages.send({ ...base, messageType: "FAX" as string });
      return [sms, mms, any];
    };
    expectTypeOf(send).returns.toExtend<Promise<SendResult>>();
    expectTypeOf(given).returns.toExtend<Promise<SendResult>>();
    expectTypeOf(wrong).toBeFunction();
    // A stand-in is written as before, and a wrapper finds the request's type.
    expectTypeOf<{ send(request: SendRequest): Call<SendResult> }>().toExtend<Client["messages"]>();
    expectTypeOf<Parameters<Client["messages"]["send"]>[0]>().toEqualTypeOf<SendRequest>();
  });

  it("do not take campaignRegId in an update (UPD-7, CLI-8)", () => {
    const right: NumberUpdate = { campaignregId: "C1" };
    // @ts-expect-error: the spelling of answers.
    const wrong: NumberUpdate = { campaignRegId: "C1" };
    // @ts-expect-error: so a number as it was read is no update.
    const read: NumberUpdate = {} as Required<Pick<PhoneNumber, "campaignRegId">>;
    expectTypeOf([right, wrong, read]).toBeArray();
  });

  it("take a webhook update with signingEnabled only, and the kinds by their names (WHK-8)", () => {
    const right: WebhookUpdate = { signingEnabled: true };
    // @ts-expect-error: it is required in every update.
    const wrong: WebhookUpdate = { enabled: true };
    expectTypeOf([right, wrong]).toBeArray();
    expectTypeOf<Parameters<Client["webhooks"]["update"]>[0]>().toEqualTypeOf<"inbound" | "delivery">();
  });

  it("take undefined for what is left out", () => {
    expectTypeOf<Left<ClientOptions, "baseUrl" | "clientId" | "clientSecret">>().toExtend<ClientOptions>();
    expectTypeOf<Left<BackoffOptions>>().toExtend<BackoffOptions>();
    expectTypeOf<Left<SendOptions>>().toExtend<SendOptions>();
    expectTypeOf<Left<WebhookUpdate, "signingEnabled">>().toExtend<WebhookUpdate>();
    expectTypeOf<Left<Omit<NumberUpdate, "campaignRegId">>>().toExtend<NumberUpdate>();
    expectTypeOf<Left<NumberSearch>>().toExtend<NumberSearch>();
    expectTypeOf<Left<MmsSend, keyof typeof base | "messageType" | "media">>().toExtend<SendRequest>();
    expectTypeOf<Left<MediaInput, keyof typeof MEDIUM>>().toExtend<MediaInput>();
  });
});
