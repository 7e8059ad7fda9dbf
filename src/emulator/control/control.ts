/** The emulator's own controls, for programs; the control API serves the same over HTTP. */
import type { Faults, JournalEntry, TriggerInput } from "../service.ts";
import type {
  Account,
  Attempt,
  Client,
  Delivery,
  EventRecord,
  InboundMessage,
  Message,
  PhoneNumber,
  RequestRecord,
} from "../state/records.ts";

/** A whole state as JSON. It holds secrets. */
export interface StateExport {
  readonly version: 1;
  /** Per table, its records by id. */
  readonly tables: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

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
