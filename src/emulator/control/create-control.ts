/** `createControl()`: the controls over the assembled service, with every argument checked. */
import { z } from "zod";
import { OncehookError, SetupError } from "../../errors.ts";
import type { FaultRule } from "../faults/rule.ts";
import { seededHex } from "../random.ts";
import { addClient, addNumber } from "../seed.ts";
import type { Service } from "../service.ts";
import type { Client, PhoneNumber } from "../state/records.ts";
import type { State } from "../state/state.ts";
import type { Control, ControlledClient, StateExport, Whole } from "./control.ts";
import {
  clientFieldsSchema,
  errorSchema,
  fitted,
  given,
  inboundSchema,
  newClientSchema,
  newNumberSchema,
  numberFieldsSchema,
  recoverSchema,
  triggerSchema,
} from "./inputs.ts";
import { createLists } from "./lists.ts";
import { exportState, tablesOf } from "./transfer.ts";
import { unknownId } from "./unknown-id.ts";

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
