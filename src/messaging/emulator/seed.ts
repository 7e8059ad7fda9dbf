/** What a new emulator holds: clients for every way to be refused, and a number for every rule of sending. */

import { seededHex } from "./clock.ts";
import { OTHER_CLIENT_IDS, type Settings } from "./options.ts";
import { type Client, type Kind, type PhoneNumber, webhookId } from "./state/records.ts";
import type { State } from "./state/state.ts";

export interface Credentials {
  /** What events name the client by. */
  readonly apiClientId: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Where a test finds what it needs. */
export interface Fixtures {
  readonly clients: {
    /** The usable one, owner of all numbers but `foreign`. */
    readonly main: Credentials;
    /** Usable as well; owner of `foreign`. */
    readonly other: Credentials;
    readonly inactive: Credentials;
    /** Active, in an inactive account. */
    readonly inactiveAccount: Credentials;
  };
  /** Number ids. */
  readonly numbers: {
    /** Active, with campaign, SMS and MMS. */
    readonly full: string;
    readonly noCampaign: string;
    readonly smsOff: string;
    readonly mmsOff: string;
    readonly inactive: string;
    /** Complete, but the other client's. */
    readonly foreign: string;
  };
}

const CAPABILITIES = ["numbers:read", "numbers:search", "numbers:update"];

/** Fills an empty state. */
export function seedState(state: State, settings: Settings): void {
  state.accounts.put("acct_main", { accountId: "acct_main", status: "ACTIVE" });
  state.accounts.put("acct_other", { accountId: "acct_other", status: "ACTIVE" });
  state.accounts.put("acct_inactive", { accountId: "acct_inactive", status: "INACTIVE" });
  const { clients, numbers } = fixturesOf(settings);
  addClient(state, { name: "Main client", accountId: "acct_main", ...clients.main });
  addClient(state, { name: "Other client", accountId: "acct_other", ...clients.other });
  addClient(state, {
    name: "Inactive client",
    accountId: "acct_main",
    status: "INACTIVE",
    ...clients.inactive,
  });
  addClient(state, {
    name: "Client of an inactive account",
    accountId: "acct_inactive",
    ...clients.inactiveAccount,
  });
  addNumber(state, { numberId: numbers.full, e164: "+12065550101" });
  addNumber(state, { numberId: numbers.noCampaign, e164: "+12065550102", campaignRegId: null });
  addNumber(state, { numberId: numbers.smsOff, e164: "+12065550103", smsEnabled: false });
  addNumber(state, { numberId: numbers.mmsOff, e164: "+12065550104", mmsEnabled: false });
  addNumber(state, { numberId: numbers.inactive, e164: "+12065550105", status: "INACTIVE" });
  addNumber(state, { numberId: numbers.foreign, e164: "+14155550106", apiClientId: "ac_other" });
  configure(state, settings, "inbound", settings.inboundUrl);
  configure(state, settings, "delivery", settings.deliveryUrl);
}

/** The same for the same settings, whatever happened since. */
function fixturesOf({ seed, clientId, clientSecret }: Settings): Fixtures {
  const secret = (name: string) => seededHex(seed, `client secret: ${name}`, 24);
  return {
    clients: {
      main: { apiClientId: "ac_main", clientId, clientSecret },
      other: { apiClientId: "ac_other", clientId: OTHER_CLIENT_IDS.other, clientSecret: secret("other") },
      inactive: { apiClientId: "ac_inactive", clientId: OTHER_CLIENT_IDS.inactive, clientSecret: secret("inactive") },
      inactiveAccount: {
        apiClientId: "ac_inactive_account",
        clientId: OTHER_CLIENT_IDS.inactiveAccount,
        clientSecret: secret("inactiveAccount"),
      },
    },
    numbers: {
      full: "num_000001",
      noCampaign: "num_000002",
      smsOff: "num_000003",
      mmsOff: "num_000004",
      inactive: "num_000005",
      foreign: "num_000006",
    },
  };
}

/** The same as they are now: in an imported state they can be another seed's, or changed by the controls. */
export function fixturesIn(state: State, settings: Settings): Fixtures {
  const { clients, numbers } = fixturesOf(settings);
  const current = (fixture: Credentials): Credentials => {
    const { apiClientId, clientId, clientSecret } = state.clients.get(fixture.apiClientId) ?? fixture;
    return { apiClientId, clientId, clientSecret };
  };
  return {
    clients: {
      main: current(clients.main),
      other: current(clients.other),
      inactive: current(clients.inactive),
      inactiveAccount: current(clients.inactiveAccount),
    },
    numbers,
  };
}

/** The secret that the main client's webhooks are signed with now, or would be. */
export function webhookSecretIn(state: State, { webhookSecret }: Settings): string {
  const current = (kind: Kind) => state.webhooks.get(webhookId("ac_main", kind))?.currentSecret ?? null;
  return current("delivery") ?? current("inbound") ?? webhookSecret;
}

/** With both webhook configurations. */
export function addClient(state: State, client: Omit<Client, "status" | "capabilities"> & Partial<Client>): void {
  const { apiClientId } = client;
  state.clients.put(apiClientId, { status: "ACTIVE", capabilities: CAPABILITIES, ...client });
  for (const kind of ["inbound", "delivery"] as const) {
    // Nothing is configured at first (WHK-17).
    state.webhooks.put(webhookId(apiClientId, kind), {
      apiClientId,
      kind,
      endpointUrl: null,
      enabled: false,
      signingEnabled: false,
      currentSecret: null,
      previousSecret: null,
      previousValidUntil: null,
      rotatedAt: null,
    });
  }
}

type NumberFields = Pick<PhoneNumber, "numberId" | "e164"> & Partial<PhoneNumber>;

export function addNumber(state: State, fields: NumberFields): PhoneNumber {
  const number: PhoneNumber = {
    status: "ACTIVE",
    campaignRegId: "C000001",
    smsEnabled: true,
    mmsEnabled: true,
    webhookInboundOverride: null,
    webhookDeliveryOverride: null,
    apiClientId: "ac_main",
    ...fields,
  };
  state.numbers.put(number.numberId, number);
  return number;
}

function configure(state: State, { webhookSecret }: Settings, kind: Kind, endpointUrl: string | undefined): void {
  if (endpointUrl === undefined) return;
  state.webhooks.update(webhookId("ac_main", kind), {
    endpointUrl,
    enabled: true,
    signingEnabled: true,
    currentSecret: webhookSecret,
  });
}
