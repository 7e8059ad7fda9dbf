/** The emulator's own controls as programs see them, and the checks of what they take. */
import { z } from "zod";
import { OncehookError, SetupError } from "../../../errors.ts";
import type { Faults } from "../faults.ts";
import { isDeeper, MOST_LEVELS } from "../http/route.ts";
import { E164, isHttpUrl, type StateExport } from "../options.ts";
import type { JournalEntry, TriggerInput } from "../service.ts";
import {
  type Account,
  type Attempt,
  type Client,
  type Delivery,
  deliverySchema,
  type EventRecord,
  type InboundMessage,
  type Message,
  type PhoneNumber,
  type RequestRecord,
  statusSchema,
} from "../state/records.ts";

// The emulator's own controls, for programs; the control API serves the same over HTTP.

/** What a list is narrowed to; all given fields must fit. */
export interface Filter {
  readonly messageId?: string | undefined;
  readonly eventType?: string | undefined;
  /** Epoch ms: only what happened at or after it. */
  readonly since?: number | undefined;
  /** At most so many, the newest ones, 1 to 10,000. Default 1,000. Lists are oldest first. */
  readonly limit?: number | undefined;
}

/** Some fields of a record: the others stay as they are. */
export type Changed<T> = { readonly [Name in keyof T]?: T[Name] | undefined };

/** A client with what decides about it. */
export type ControlledClient = Client & { readonly accountStatus: Account["status"] };

/** What of a client can be changed. */
export type ClientFields = Changed<
  Pick<ControlledClient, "status" | "capabilities" | "clientSecret" | "accountStatus">
>;

/** A new client: all of it can be left out. Default: ACTIVE, all capabilities, an account of its own, and ids that are free. */
export type NewClient = Changed<
  Pick<
    ControlledClient,
    "apiClientId" | "clientId" | "name" | "status" | "capabilities" | "clientSecret" | "accountStatus"
  >
>;

/** A new number: `e164` is required. Default: the main client's, ACTIVE, with campaign, SMS and MMS, and an id that is free. */
export type NewNumber = Pick<PhoneNumber, "e164"> & Changed<PhoneNumber>;

/** The fault rules: which are in force, and changes of them. */
export type FaultControls = Pick<Faults, "add" | "remove" | "clear" | "list">;

/**
 * The controls. A call that names something unknown throws an `OncehookError` with code `unknown_id`, a step of a message that
 * has none left one with `message_ended`, and an argument that does not fit a `SetupError` with `invalid_option`. Once the emulator has
 * closed, what would change something throws one with `closed`, or rejects with it; the rest still shows what it held.
 */
export interface Control {
  /** A customer's message to one of our numbers, named by its E.164 or its number id; sends `message.inbound`. */
  inbound(message: { to: string; from: string; body: string; media?: readonly unknown[] | undefined }): InboundMessage;
  messages(filter?: Omit<Filter, "eventType">): readonly (Message | InboundMessage)[];
  requests(filter?: Pick<Filter, "since" | "limit">): readonly RequestRecord[];
  events(filter?: Filter): readonly EventRecord[];
  /** Deliveries with their attempts, and the secrets that sign them: not for a log. The control API shows them without. */
  deliveries(filter?: Filter & { state?: Delivery["state"] | undefined }): readonly Delivery[];
  /** All attempts, oldest first. */
  attempts(filter?: Filter): readonly (Attempt & { readonly deliveryId: string; readonly eventId: string })[];
  /**
   * One extra attempt of a delivery; no retry follows. Rejects with an `OncehookError` with code `cut_off` when a reset, an import, the
   * bounds of the state (`keep`) or `close()` took the delivery or the emulator away before the attempt had ended: the receiver may
   * have seen it or not.
   */
  redeliver(deliveryId: string): Promise<Delivery>;
  /** One extra attempt of everything since `since` (epoch ms) that is not delivered when its turn comes; those that were made. */
  recover(since: number): Promise<readonly Delivery[]>;
  /** The next step of a message happens now. */
  advanceMessage(messageId: string): Message;
  failMessage(messageId: string, error?: { code: string; message: string }): Message;
  /** Any event, as if the service had sent it. */
  trigger(event: TriggerInput): EventRecord;
  readonly faults: FaultControls;
  clients(): readonly ControlledClient[];
  /** The same as the clients of the start: gone after a reset. Its secret is in what is returned. */
  addClient(client?: NewClient): ControlledClient;
  /** `accountStatus` is its account's, which other clients can share. */
  updateClient(apiClientId: string, fields: ClientFields): ControlledClient;
  numbers(): readonly PhoneNumber[];
  /** Gone after a reset. */
  addNumber(number: NewNumber): PhoneNumber;
  updateNumber(numberId: string, fields: Changed<Omit<PhoneNumber, "numberId">>): PhoneNumber;
  /** Makes all tokens unknown, or those of one client; returns how many. */
  revokeTokens(apiClientId?: string): number;
  exportState(): StateExport;
  importState(state: StateExport): void;
  /** Back to the seed data: nothing happened yet. The clock stays where it is. */
  reset(): void;
  /**
   * Calls `listener` for all that happens from now on; the returned function ends that. A delivery comes with the secrets that sign
   * it, as in `deliveries()`.
   */
  watch(listener: (entry: JournalEntry) => void): () => void;
}

/** What the controls need of the emulator as a whole. */
export interface Whole {
  /** Empties the state and seeds it again. */
  reset(): void;
  /** Puts another state in the place of this one, and takes up what it left pending. The records are its own from then on. */
  load(tables: StateExport["tables"]): void;
  /** Whether what happens is no longer kept. */
  isClosed(): boolean;
}

// What the controls take, once: checked for calls of a program, and as bodies and query parameters of the control API.

const text = z.string().min(1);
const instant = z.int().min(0);
/** Not `__proto__`, which objects lose, and nothing that a path would change. */
const recordId = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]{0,63}$/, "must be 1 to 64 letters, digits, dots, dashes and underscores");
const override = z.string().refine(isHttpUrl, "must be an http or https URL").nullable();

export const inboundSchema = z.strictObject({
  /** One of our numbers: its E.164 or its number id. */
  to: text,
  from: text,
  body: z.string(),
  media: z.array(z.json()).optional(),
});

export const errorSchema = z.strictObject({ code: text, message: z.string() });

export const triggerSchema = z.strictObject({
  kind: z.enum(["inbound", "delivery"]),
  eventType: text,
  apiClientId: text,
  numberId: text,
  messageId: text,
  sequence: z.int().nullable(),
  data: z.record(z.string(), z.json()),
});

const clientFields = {
  status: statusSchema,
  capabilities: z.array(text),
  clientSecret: text,
  accountStatus: statusSchema,
};

export const clientFieldsSchema = z.strictObject(clientFields).partial();

export const newClientSchema = z
  .strictObject({ apiClientId: recordId, clientId: text, name: z.string(), ...clientFields })
  .partial();

const numberFields = {
  e164: z.string().regex(E164, "must be an E.164 number"),
  status: statusSchema,
  campaignRegId: text.nullable(),
  smsEnabled: z.boolean(),
  mmsEnabled: z.boolean(),
  webhookInboundOverride: override,
  webhookDeliveryOverride: override,
  apiClientId: text,
};

export const numberFieldsSchema = z.strictObject(numberFields).partial();

export const newNumberSchema = z
  .strictObject({ numberId: recordId, ...numberFields })
  .partial()
  .required({ e164: true });

export const recoverSchema = z.strictObject({ since: instant });

const narrowing = { since: instant.optional(), limit: z.int().min(1).max(10_000).optional() };

/** By what each list can be narrowed. */
export const filters = {
  requests: z.strictObject(narrowing),
  messages: z.strictObject({ messageId: text.optional(), ...narrowing }),
  events: z.strictObject({ messageId: text.optional(), eventType: text.optional(), ...narrowing }),
  deliveries: z.strictObject({
    messageId: text.optional(),
    eventType: text.optional(),
    state: deliverySchema.shape.state.optional(),
    ...narrowing,
  }),
} as const;

/**
 * The value as its schema says, for a call of a program.
 *
 * @throws SetupError when it does not fit; the message names fields and types, none of its values
 */
export function fitted<T>(call: string, schema: z.ZodType<T>, value: unknown): T {
  const unfit = (problem: string) =>
    new SetupError("invalid_option", `control.${call} does not take this: ${problem}.`, { fields: { call } });
  // First: a schema walks through the value, and what it lets pass is written as JSON.
  if (isDeeper(value, MOST_LEVELS)) throw unfit(`it is nested deeper than ${MOST_LEVELS} levels`);
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw unfit(problemOf(parsed.error));
}

/** The fields that have a value: one that is given as undefined changes nothing. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Where a value does not fit, in a few words: `"to": Invalid input: expected string, received number`. */
export function problemOf(error: z.ZodError): string {
  const [issue] = error.issues;
  const path = issue?.path.join(".") ?? "";
  return path === "" ? `${issue?.message}` : `"${path}": ${issue?.message}`;
}

// The error of a call that names something that the emulator does not hold.

export function unknownId(thing: "client" | "delivery" | "fault rule" | "message" | "number"): OncehookError {
  return new OncehookError("unknown_id", `There is no such ${thing}.`, { fields: { thing } });
}
