/** `createControl()`: the controls over the assembled service, with every argument checked. */
import { z } from "zod";
import { OncehookError, SetupError } from "../../../errors.ts";
import { seededHex } from "../clock.ts";
import type { FaultRule } from "../faults.ts";
import { isDeeper, MOST_LEVELS } from "../http/route.ts";
import type { StateExport } from "../options.ts";
import { addClient, addNumber, seedState } from "../seed.ts";
import type { Service } from "../service.ts";
import { type Client, type PhoneNumber, webhookId } from "../state/records.ts";
import {
  isUnderItsId,
  numberOf,
  RECORD_SCHEMAS,
  type State,
  TABLE_NAMES,
  type Table,
  type Tables,
} from "../state/state.ts";
import {
  type Control,
  type ControlledClient,
  clientFieldsSchema,
  errorSchema,
  filters,
  fitted,
  given,
  inboundSchema,
  newClientSchema,
  newNumberSchema,
  numberFieldsSchema,
  problemOf,
  recoverSchema,
  triggerSchema,
  unknownId,
  type Whole,
} from "./control.ts";

export function createControl(service: Service, whole: Whole): Control {
  const { state, journal, faults } = service;
  const changes = {
    ...messageControls(service),
    ...clientControls(service),
    ...numberControls(service),
    importState: (exported: StateExport) => whole.load(tablesOf(exported)),
    reset: () => whole.reset(),
  };
  const faultChanges = {
    add: (rule: FaultRule) => faults.add(rule),
    remove: (id: string) => faults.remove(id),
    clear: () => faults.clear(),
  };
  return {
    ...createLists(state),
    ...deliveryControls(service, whole),
    ...whileOpen(whole, changes),
    faults: { ...whileOpen(whole, faultChanges), list: () => faults.list() },
    clients: () => [...state.clients.values()].map((client) => controlled(state, client)),
    numbers: () => [...state.numbers.values()],
    exportState() {
      state.meta.put("now", service.time.now());
      return exportState(state);
    },
    watch: (listener) => journal.watch(listener),
  };
}

/** Controls that change something, as long as that is kept. */
function whileOpen<T extends object>({ isClosed }: Whole, changes: T): T {
  const guarded = Object.entries(changes).map(([name, change]) => [
    name,
    (...given: unknown[]) => {
      requireOpen(isClosed());
      return change(...given);
    },
  ]);
  return Object.fromEntries(guarded) as T;
}

/** @throws OncehookError `closed` */
export function requireOpen(isClosed: boolean): void {
  if (isClosed) throw new OncehookError("closed", "The emulator is closed: nothing can be changed any more.");
}

type MessageControls = Pick<Control, "inbound" | "advanceMessage" | "failMessage" | "trigger">;

function messageControls({ state, messages }: Service): MessageControls {
  const step = <T>(messageId: string, result: T | undefined): T => {
    if (!state.messages.has(messageId)) throw unknownId("message");
    if (result !== undefined) return result;
    throw new OncehookError("message_ended", "The message has ended: nothing more can happen to it.", {
      fields: { messageId },
    });
  };
  return {
    inbound(message) {
      const { to, from, body, media = [] } = fitted("inbound()", inboundSchema, message);
      const number = numberNamed(state.numbers.values(), to);
      if (number === undefined) throw unknownId("number");
      return messages.receive({ number, from, body, media });
    },
    advanceMessage: (messageId) => step(messageId, messages.advance(messageId)),
    failMessage(messageId, error) {
      const reason = fitted("failMessage()", errorSchema.optional(), error);
      return step(messageId, messages.fail(messageId, reason));
    },
    trigger(event) {
      const input = fitted("trigger()", triggerSchema, event);
      if (state.clients.get(input.apiClientId) === undefined) throw unknownId("client");
      if (state.numbers.get(input.numberId) === undefined) throw unknownId("number");
      return messages.trigger(input);
    },
  };
}

function deliveryControls({ deliveries }: Service, { isClosed }: Whole): Pick<Control, "redeliver" | "recover"> {
  return {
    async redeliver(deliveryId) {
      requireOpen(isClosed());
      const delivery = await deliveries.redeliver(deliveryId);
      if (delivery === "unknown") throw unknownId("delivery");
      if (delivery !== "cut_off") return delivery;
      throw new OncehookError(
        "cut_off",
        "The attempt was cut off by a reset, an import, the bounds of the state or the close: what came of it is not known.",
        { fields: { deliveryId } },
      );
    },
    async recover(since) {
      requireOpen(isClosed());
      return deliveries.recover(fitted("recover()", recoverSchema, { since }).since);
    },
  };
}

function clientControls({ state, settings }: Service): Pick<Control, "addClient" | "updateClient" | "revokeTokens"> {
  const known = (apiClientId: string): Client => {
    const client = state.clients.get(apiClientId);
    if (client === undefined) throw unknownId("client");
    return client;
  };
  return {
    addClient(client = {}) {
      const { accountStatus = "ACTIVE", ...fields } = given(fitted("addClient()", newClientSchema, client));
      const { apiClientId = freeId("ac", state.clients) } = fields;
      const { clientId = `client_of_${apiClientId}`, name = `Client ${apiClientId}` } = fields;
      const { clientSecret = seededHex(settings.seed, `client secret: ${apiClientId}`, 24) } = fields;
      if (state.clients.has(apiClientId)) throw taken("addClient()", "apiClientId");
      if ([...state.clients.values()].some((one) => one.clientId === clientId)) throw taken("addClient()", "clientId");
      // Its own account: the account's status then concerns this client only.
      const accountId = freeId("acct", state.accounts);
      state.accounts.put(accountId, { accountId, status: accountStatus });
      addClient(state, { ...fields, apiClientId, clientId, clientSecret, name, accountId });
      return controlled(state, known(apiClientId));
    },
    updateClient(apiClientId, changes) {
      const { accountId } = known(apiClientId);
      const { accountStatus, ...fields } = fitted("updateClient()", clientFieldsSchema, changes);
      if (accountStatus !== undefined) state.accounts.update(accountId, { status: accountStatus });
      state.clients.update(apiClientId, given(fields));
      return controlled(state, known(apiClientId));
    },
    revokeTokens(apiClientId) {
      if (apiClientId !== undefined) known(fitted("revokeTokens()", z.string(), apiClientId));
      const revoked = [...state.tokens.values()].filter(
        (token) => (apiClientId ?? token.apiClientId) === token.apiClientId,
      );
      for (const { accessToken } of revoked) state.tokens.remove(accessToken);
      return revoked.length;
    },
  };
}

function numberControls({ state }: Service): Pick<Control, "addNumber" | "updateNumber"> {
  return {
    addNumber(number) {
      const fields = given(fitted("addNumber()", newNumberSchema, number));
      const { e164 = "", numberId = freeId("num", state.numbers), apiClientId = "ac_main" } = fields;
      if (!state.clients.has(apiClientId)) throw unknownId("client");
      if (state.numbers.has(numberId)) throw taken("addNumber()", "numberId");
      // Inbound messages find their number by it.
      if (numberNamed(state.numbers.values(), e164) !== undefined) throw taken("addNumber()", "e164");
      return addNumber(state, { ...fields, numberId, e164, apiClientId });
    },
    updateNumber(numberId, changes) {
      const number = state.numbers.get(numberId);
      if (number === undefined) throw unknownId("number");
      const fields = given(fitted("updateNumber()", numberFieldsSchema, changes));
      if (fields.apiClientId !== undefined && state.clients.get(fields.apiClientId) === undefined) {
        throw unknownId("client");
      }
      const updated = { ...number, ...fields };
      state.numbers.put(numberId, updated);
      return updated;
    },
  };
}

/** The next one of the form `num_000007` that nothing has. */
function freeId(prefix: string, table: { readonly size: number; has(id: string): boolean }): string {
  for (let number = table.size + 1; ; number++) {
    const id = `${prefix}_${String(number).padStart(6, "0")}`;
    if (!table.has(id)) return id;
  }
}

function taken(call: string, field: string): SetupError {
  const message = `control.${call} does not take this: "${field}": there is one with it already; give another, or none.`;
  return new SetupError("invalid_option", message, { fields: { call } });
}

function controlled({ accounts }: State, client: Client): ControlledClient {
  return { ...client, accountStatus: accounts.get(client.accountId)?.status ?? "INACTIVE" };
}

function numberNamed(numbers: Iterable<PhoneNumber>, name: string): PhoneNumber | undefined {
  for (const number of numbers) if (number.numberId === name || number.e164 === name) return number;
  return undefined;
}

// The lists of the controls: narrowed by filters, the newest ones within the limit, oldest first.

const DEFAULT_LIMIT = 1_000;

type Lists = Pick<Control, "messages" | "requests" | "events" | "deliveries" | "attempts">;

function createLists(state: State): Lists {
  return {
    messages(filter = {}) {
      const { since = 0, messageId, limit } = fitted("messages()", filters.messages, filter);
      const fits = (message: Listed) =>
        message.createdAt >= since && (messageId ?? message.messageId) === message.messageId;
      const both = [...[...state.messages.values()].filter(fits), ...[...state.inboundMessages.values()].filter(fits)];
      return newest(both.sort(byAge), limit);
    },
    requests(filter = {}) {
      const { since = 0, limit } = fitted("requests()", filters.requests, filter);
      return newest(
        [...state.requests.values()].filter(({ at }) => at >= since),
        limit,
      );
    },
    events(filter = {}) {
      const { since = 0, limit, ...rest } = fitted("events()", filters.events, filter);
      const found = [...state.events.values()].filter((event) => event.occurredAt >= since && isOf(event, rest));
      return newest(found, limit);
    },
    deliveries(filter = {}) {
      const { since = 0, limit, state: wanted, ...rest } = fitted("deliveries()", filters.deliveries, filter);
      const found = [...state.deliveries.values()].filter(
        (delivery) =>
          delivery.createdAt >= since && (wanted ?? delivery.state) === delivery.state && isOf(delivery, rest),
      );
      return newest(found, limit);
    },
    attempts(filter = {}) {
      const { since = 0, limit, ...rest } = fitted("attempts()", filters.events, filter);
      const found = [...state.deliveries.values()]
        .filter((delivery) => isOf(delivery, rest))
        .flatMap(({ deliveryId, eventId, attempts }) =>
          attempts.map((attempt) => ({ ...attempt, deliveryId, eventId })),
        );
      return newest(
        found.filter(({ at }) => at >= since).sort((a, b) => a.at - b.at),
        limit,
      );
    },
  };
}

function isOf(
  record: { readonly messageId: string; readonly eventType: string },
  { messageId, eventType }: { readonly messageId?: string | undefined; readonly eventType?: string | undefined },
): boolean {
  return (messageId ?? record.messageId) === record.messageId && (eventType ?? record.eventType) === record.eventType;
}

interface Listed {
  readonly messageId: string;
  readonly createdAt: number;
}

/**
 * In the order in which ids were given out: one counter numbers them, whatever tag a start of the emulator put before. Imported
 * ids of another form were there before what was given out since, and have their time only.
 */
function byAge(a: Listed, b: Listed): number {
  return numberOf("msg", a.messageId) - numberOf("msg", b.messageId) || a.createdAt - b.createdAt;
}

function newest<T>(records: readonly T[], limit = DEFAULT_LIMIT): readonly T[] {
  return records.slice(-limit);
}

// The state as a whole: back to the seed data, or another one in its place.

export function createWhole(service: Service): Omit<Whole, "isClosed"> {
  const { state, scheduler, settings, time, journal, faults, messages, deliveries } = service;
  /** A receiver may remember ids, so none may come twice: counters continue, except those of log lines. */
  const empty = () => {
    scheduler.clear();
    deliveries.forget();
    const counted = [...state.counters.entries()].filter(([counter]) => counter !== "log");
    for (const name of TABLE_NAMES) state[name].clear();
    return counted;
  };
  return {
    reset() {
      for (const [counter, count] of empty()) state.counters.put(counter, count);
      seedState(state, settings);
      faults.clear();
      for (const rule of settings.faults) faults.add(rule);
      journal.tell({ type: "reset" });
    },
    load(tables) {
      const counted = empty();
      for (const name of TABLE_NAMES) {
        const table = state[name] as Table<unknown>;
        for (const [id, record] of Object.entries(tables[name] ?? {})) table.put(id, record);
      }
      for (const [counter, count] of counted) {
        if (count > (state.counters.get(counter) ?? 0)) state.counters.put(counter, count);
      }
      time.raiseTo(state.meta.get("now") ?? 0);
      journal.tell({ type: "reset" });
      messages.resume();
      deliveries.resume();
    },
  };
}

// The whole state as JSON and back, checked record by record before anything of it is taken.

const tablesSchema = z
  .strictObject(
    Object.fromEntries(TABLE_NAMES.map((name) => [name, z.record(z.string(), RECORD_SCHEMAS[name] as z.ZodType)])),
  )
  .partial();

/** An export. */
export const stateSchema = z.strictObject({ version: z.literal(1), tables: tablesSchema });

function exportState(state: State): StateExport {
  const tables = TABLE_NAMES.map((name) => [name, Object.fromEntries(state[name].entries())]);
  return { version: 1, tables: Object.fromEntries(tables) };
}

/**
 * The tables of an export, when all of it fits: a copy, so that its records are others than those of any state, and the caller's
 * stay the caller's.
 *
 * @throws SetupError when it is not an export of this version, or refers to records that it does not hold
 */
function tablesOf(exported: unknown): StateExport["tables"] {
  if (isDeeper(exported, LEVELS_ABOVE_CALLS + MOST_LEVELS)) {
    throw unfit(`what a call brought is nested deeper than ${MOST_LEVELS} levels`);
  }
  const parsed = stateSchema.safeParse(exported);
  if (!parsed.success) throw unfit(problemOf(withoutId(parsed.error)));
  // As it came, not as the schemas order its fields: what is exported again is the same text.
  const { tables } = exported as StateExport;
  refuseStrayIds(tables);
  refuseMissingWebhooks(tables);
  refuseDeadReferences(tables);
  return copyOf(tables);
}

/** The export, its tables, a table and a record: in their fields lies what calls brought. */
const LEVELS_ABOVE_CALLS = 4;

/** The first problem, by its table and field. No record is named in what is said: its id can be a token, or a caller's key. */
function withoutId({ issues }: z.ZodError): z.ZodError {
  const [first] = issues;
  const path = first?.path.filter((_, depth) => depth !== ID_DEPTH) ?? [];
  return new z.ZodError(first === undefined ? [] : [{ ...first, path }]);
}

/** In `tables.tokens.<id>.expiresAt`. */
const ID_DEPTH = 2;

function refuseStrayIds(tables: StateExport["tables"]): void {
  for (const name of TABLE_NAMES) {
    const isWhole = Object.entries(tables[name] ?? {}).every(([id, record]) => isUnderItsId(name, id, record));
    if (!isWhole) throw unfit(`a record of ${name} is under an id that is not its own`);
  }
}

/** The service's webhook routes answer for both kinds of every client (WHK-17). */
function refuseMissingWebhooks(tables: StateExport["tables"]): void {
  for (const apiClientId of Object.keys(tables.clients ?? {})) {
    for (const kind of ["inbound", "delivery"] as const) {
      if (Object.hasOwn(tables.webhooks ?? {}, webhookId(apiClientId, kind))) continue;
      throw unfit(`a client has no record of webhooks for "${kind}"`);
    }
  }
}

/** What would leave a message without its sender, or a delivery without its body. A removed record's own log may stay. */
const REFERENCES: readonly { readonly table: keyof Tables; readonly field: string; readonly to: keyof Tables }[] = [
  { table: "clients", field: "accountId", to: "accounts" },
  { table: "webhooks", field: "apiClientId", to: "clients" },
  { table: "numbers", field: "apiClientId", to: "clients" },
  { table: "tokens", field: "apiClientId", to: "clients" },
  { table: "messages", field: "apiClientId", to: "clients" },
  { table: "messages", field: "numberId", to: "numbers" },
  { table: "inboundMessages", field: "numberId", to: "numbers" },
  { table: "deliveries", field: "eventId", to: "events" },
];

function refuseDeadReferences(tables: StateExport["tables"]): void {
  for (const { table, field, to } of REFERENCES) {
    for (const record of Object.values(tables[table] ?? {})) {
      const target = (record as Readonly<Record<string, string>>)[field] ?? "";
      if (!Object.hasOwn(tables[to] ?? {}, target)) throw unfit(`"${table}.${field}" names no record of ${to}`);
    }
  }
}

/** A program's records can hold anything, and what JSON has no form for could never be kept. */
function copyOf(tables: StateExport["tables"]): StateExport["tables"] {
  try {
    const copy = structuredClone(tables);
    for (const table of Object.values(copy)) for (const record of Object.values(table)) JSON.stringify(record);
    return copy;
  } catch (cause) {
    throw unfit("a record holds a value that is not JSON", cause);
  }
}

function unfit(problem: string, cause?: unknown): SetupError {
  return new SetupError("invalid_option", `The emulator did not export this state: ${problem}.`, { cause });
}
