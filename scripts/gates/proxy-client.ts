/** The part of the gate "api proxy" that our own client plays: every method, with what it sends and what it takes held against the document. */
import {
  type Client,
  ConflictError,
  createClient,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  ServerError,
  type ServiceError,
  UnauthorizedError,
  UpstreamError,
} from "../../src/client/index.ts";
import { createEmulator, type Emulator } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { refusalIn, startPrism } from "./prism.ts";

interface ClientCall {
  readonly name: string;
  /** What it ends in; absent for success. */
  readonly error?: abstract new (
    ...args: never[]
  ) => ServiceError;
  make(client: Client, emulator: Emulator): Promise<unknown>;
}

const sms = { to: ["+14155550123"], messageType: "SMS", text: "hello", externalReference: "order-1" } as const;
const media = [{ storageKey: "a.png", mimeType: "image/png", byteLength: 10, fileName: "a.png" }] as const;
const target = { endpointUrl: "http://127.0.0.1:9/webhooks", enabled: true, signingEnabled: true };

const CALLS: readonly ClientCall[] = [
  { name: "whoami", make: (client) => client.whoami() },
  { name: "webhooks.get", make: (client) => client.webhooks.get() },
  { name: "webhooks.update", make: (client) => client.webhooks.update("inbound", target) },
  {
    name: "webhooks.update with a secret",
    make: (client) => client.webhooks.update("delivery", { ...target, secret: "a secret of our own" }),
  },
  {
    name: "webhooks.update to nothing",
    make: (client) => client.webhooks.update("inbound", { endpointUrl: null, enabled: false, signingEnabled: false }),
  },
  { name: "numbers.list", make: (client) => client.numbers.list() },
  { name: "numbers.get", make: (client, { fixtures }) => client.numbers.get(fixtures.numbers.full) },
  { name: "numbers.search", make: (client) => client.numbers.search({ state: "WA", city: "Seattle" }) },
  { name: "numbers.search of all", make: (client) => client.numbers.search() },
  {
    name: "numbers.update",
    make: (client, { fixtures }) =>
      client.numbers.update(fixtures.numbers.full, {
        ...{ campaignregId: "C123", smsEnabled: true, mmsEnabled: true },
        ...{ webhookInboundOverride: "http://127.0.0.1:9/", webhookDeliveryOverride: null },
      }),
  },
  {
    name: "messages.send",
    make: (client, { fixtures }) => client.messages.send({ ...sms, sendFrom: fixtures.numbers.full }),
  },
  {
    name: "messages.send with media",
    make: (client, { fixtures }) =>
      client.messages.send({ ...sms, sendFrom: fixtures.numbers.full, messageType: "MMS", media }),
  },
  {
    name: "messages.send to some that are none",
    make: (client, { fixtures }) =>
      client.messages.send({ ...sms, sendFrom: fixtures.numbers.full, to: ["+14155550123", "555-0100"] }),
  },
  {
    name: "whoami after its token was revoked",
    make(client, { control }) {
      control.revokeTokens();
      return client.whoami();
    },
  },
  {
    name: "messages.send from no number",
    error: NotFoundError,
    make: (client) => client.messages.send({ ...sms, sendFrom: "num_none" }),
  },
  {
    name: "numbers.update of another's number",
    error: ForbiddenError,
    make: (client, { fixtures }) => client.numbers.update(fixtures.numbers.foreign, {}),
  },
  {
    name: "messages.send from a number without campaign",
    error: InvalidRequestError,
    make: (client, { fixtures }) => client.messages.send({ ...sms, sendFrom: fixtures.numbers.noCampaign }),
  },
  {
    name: "messages.send of another payload",
    error: ConflictError,
    async make(client, { fixtures }) {
      const request = { ...sms, sendFrom: fixtures.numbers.full };
      const { idempotencyKey } = await client.messages.send(request);
      return client.messages.send({ ...request, text: "other" }, { idempotencyKey });
    },
  },
  {
    name: "numbers.search upstream",
    error: UpstreamError,
    make: (client) => client.numbers.search({ zipCode: "00502" }),
  },
  {
    name: "whoami that fails",
    error: ServerError,
    make(client, { control }) {
      control.faults.add({
        match: { route: "GET /api/core/whoami" },
        action: { type: "status", status: 500 },
        times: 2,
      });
      return client.whoami();
    },
  },
  {
    name: "whoami of an inactive client",
    error: UnauthorizedError,
    make(client, { control }) {
      const action = { type: "status", status: 401, code: "UNAUTHORIZED" } as const;
      control.faults.add({ match: { route: "GET /api/core/whoami" }, action, times: 2 });
      return client.whoami();
    },
  },
];

/** Plays all calls through prism, once per way of naming the client. */
export async function playClient(root: string, program: string): Promise<{ count: number; problems: string[] }> {
  const problems: string[] = [];
  let count = 0;
  for (const authMethod of ["body", "basic"] as const) {
    await using emulator = await createEmulator({ logger: silentLogger });
    const prism = await startPrism(program, { root, upstream: emulator.url, strict: true });
    const watching: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      count += 1;
      const refusal = refusalIn(response, await response.clone().text());
      if (refusal !== null) problems.push(`by ${authMethod}, ${init?.method} ${input}: ${refusal}`);
      return response;
    };
    const { clientId, clientSecret } = emulator;
    const options = { clientId, clientSecret, authMethod, backoff: { baseMs: 0 }, maxRetries: 1, logger: silentLogger };
    const client = createClient({ ...options, baseUrl: prism.url, validateResponses: "throw", fetch: watching });
    try {
      for (const call of CALLS) problems.push(...(await problemOf(call, client, emulator)));
    } finally {
      await prism.stop();
    }
  }
  return { count, problems };
}

async function problemOf({ name, error, make }: ClientCall, client: Client, emulator: Emulator): Promise<string[]> {
  try {
    await make(client, emulator);
    return error === undefined ? [] : [`${name} succeeded instead of ending in ${error.name}`];
  } catch (failure) {
    return error !== undefined && failure instanceof error ? [] : [`${name} ended in ${String(failure)}`];
  }
}
