/** Most of this file is checked by the compiler: a wrong type fails `tsc`, which includes the tests. */
import { describe, expect, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import { type Operation, RESPONSES } from "../../src/client/checks.ts";
import { type Call, type Client, type ClientOptions, createClient, type SendOptions } from "../../src/client/index.ts";
import type {
  AcceptedRecipient,
  MediaInput,
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
} from "../../src/client/types.ts";

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

const medium: MediaInput = { storageKey: "media/1", mimeType: "image/png", byteLength: 1_024 };
const GIVEN = { baseUrl: "https://api.example.com", clientId: "client_main", clientSecret: "a-secret" };
const base = { sendFrom: "num_1", to: ["+14155550123"], externalReference: "order-1" };

describe("the types of answers", () => {
  it("are those of the schemas, field by field, both ways", () => {
    expectTypeOf<Declared<Bodies>>().toEqualTypeOf<Declared<SchemaBodies>>();
    expect(Object.keys(RESPONSES)).toHaveLength(7);
  });

  it("spell campaignRegId as answers do (NUM-3, CLI-8)", () => {
    expectTypeOf<PhoneNumber>().toHaveProperty("campaignRegId");
    expectTypeOf<PhoneNumber>().not.toHaveProperty("campaignregId");
  });

  it("give all numbers as one list, without a cursor (NUM-4)", () => {
    expectTypeOf<Awaited<ReturnType<Client["numbers"]["list"]>>>().toEqualTypeOf<readonly PhoneNumber[]>();
  });

  it("make a caller look whether an update answered with a number (UPD-11)", () => {
    expectTypeOf<Awaited<ReturnType<Client["numbers"]["update"]>>>().toEqualTypeOf<PhoneNumber | null>();
  });

  it("make a caller look whether an endpointUrl is there (WHK-14)", () => {
    expectTypeOf<UpdatedWebhookConfig["endpointUrl"]>().toEqualTypeOf<string | null | undefined>();
  });
});

describe("the types of requests", () => {
  it("take an SMS without media only (SND-11)", () => {
    const sms: SendRequest = { ...base, messageType: "SMS" };
    // @ts-expect-error: an SMS has no media.
    const withMedia: SendRequest = { ...base, messageType: "SMS", media: [medium] };
    // @ts-expect-error: and no empty list.
    const withNone: SmsSend = { ...base, messageType: "SMS", media: [] };
    expectTypeOf([sms, withMedia, withNone]).toBeArray();
  });

  it("take an MMS with at least one medium only (SND-12)", () => {
    const mms: SendRequest = { ...base, messageType: "MMS", media: [medium] };
    // @ts-expect-error: an MMS has media.
    const without: SendRequest = { ...base, messageType: "MMS" };
    // @ts-expect-error: at least one.
    const withNone: SendRequest = { ...base, messageType: "MMS", media: [] };
    expectTypeOf([mms, without, withNone]).toBeArray();
  });

  it("take a computed messageType, and leave media to the client's own check", () => {
    const send = (media: readonly MediaInput[], client: Client) => {
      const messageType = media.length > 0 ? "MMS" : "SMS";
      return client.messages.send({ ...base, messageType, media: media.length > 0 ? media : undefined });
    };
    const given = (messageType: "SMS" | "MMS", client: Client) => client.messages.send({ ...base, messageType });
    const wrong = (client: Client) => {
      // @ts-expect-error: a type that is known is held to what belongs to it.
      const sms = client.messages.send({ ...base, messageType: "SMS", media: [medium] });
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

  it("take SMS and MMS only, as they are written (SND-10)", () => {
    // @ts-expect-error: capitals.
    const small: SendRequest = { ...base, messageType: "sms" };
    expectTypeOf(small).toExtend<SendRequest>();
  });

  it("take a send with externalReference only (SND-14)", () => {
    // @ts-expect-error: it is required.
    const without: SendRequest = { sendFrom: "num_1", to: [], messageType: "SMS" };
    expectTypeOf(without).toExtend<SendRequest>();
  });

  it("do not take campaignRegId in an update (UPD-7, CLI-8)", () => {
    const right: NumberUpdate = { campaignregId: "C1" };
    // @ts-expect-error: the spelling of answers.
    const wrong: NumberUpdate = { campaignRegId: "C1" };
    // @ts-expect-error: so a number as it was read is no update.
    const read: NumberUpdate = {} as Required<Pick<PhoneNumber, "campaignRegId">>;
    expectTypeOf([right, wrong, read]).toBeArray();
  });

  it("take a webhook update with signingEnabled only (WHK-8)", () => {
    const right: WebhookUpdate = { signingEnabled: true };
    // @ts-expect-error: it is required in every update.
    const wrong: WebhookUpdate = { enabled: true };
    expectTypeOf([right, wrong]).toBeArray();
  });

  it("take undefined for what is left out, as code writes it that has a value or none", () => {
    const options: Partial<ClientOptions> = {
      ...{ retryRateLimited: undefined, allowHttpToPrivateHosts: undefined },
      ...{ authMethod: undefined, timeoutMs: undefined, maxRetries: undefined, validateRequests: undefined },
      backoff: { baseMs: undefined, maxMs: undefined },
      ...{ validateResponses: undefined, fetch: undefined, logger: undefined, clock: undefined, random: undefined },
      ...{ onRequest: undefined, onResponse: undefined, onRetry: undefined },
    };
    const send: SendOptions = {
      ...{
        signal: undefined,
        idempotencyKey: undefined,
        timeoutMs: undefined,
        maxRetries: undefined,
        headers: undefined,
      },
    };
    const webhook: WebhookUpdate = {
      signingEnabled: true,
      endpointUrl: undefined,
      enabled: undefined,
      secret: undefined,
    };
    const number: NumberUpdate = {
      ...{ campaignregId: undefined, smsEnabled: undefined, mmsEnabled: undefined },
      ...{ webhookInboundOverride: undefined, webhookDeliveryOverride: undefined },
    };
    const search: NumberSearch = {
      ...{ npa: undefined, nxx: undefined, city: undefined, state: undefined },
      ...{ zipCode: undefined, rateCenter: undefined },
    };
    const mms: SendRequest = {
      ...{ ...base, messageType: "MMS", text: undefined },
      media: [{ ...medium, sourceUrl: undefined, fileName: undefined }],
    };
    expectTypeOf([options, send, webhook, number, search, mms]).toBeArray();
    expect(() => createClient({ ...GIVEN, ...options })).not.toThrow();
  });

  it("take the kinds by their names only", () => {
    expectTypeOf<Parameters<Client["webhooks"]["update"]>[0]>().toEqualTypeOf<"inbound" | "delivery">();
  });
});
