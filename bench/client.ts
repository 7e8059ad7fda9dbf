/** The API client: what a call costs beside a bare `fetch` with the same body, and how many tokens a crowd asks for. */

import { silentLogger } from "../src/internal/logger.ts";
import { type Client, createClient, type SendRequest } from "../src/messaging/client/index.ts";
import { createFakeClock } from "../src/tools/testing/index.ts";
import { median } from "../test/support/statistics.ts";
import { type Child, startChild } from "./child.ts";
import type { ClientServerQuestion } from "./client-server.ts";
import { type Group, grouped, type Limit, type Row, ratioOf, row } from "./rows.ts";

const CALLS: readonly { readonly limit: Limit; readonly path: string; call(client: Client): Promise<unknown> }[] = [
  {
    limit: { name: "client: messages.send / bare fetch, time", target: 1.3, bound: "at most" },
    path: "/api/core/messages/send",
    call: (client) => client.messages.send(SEND),
  },
  {
    limit: { name: "client: whoami / bare fetch, time", target: 1.3, bound: "at most" },
    path: "/api/core/whoami",
    call: (client) => client.whoami(),
  },
];
const TOKENS: Limit = {
  name: "client: token requests of 1,000 parallel calls, expired token",
  target: 1,
  bound: "at most",
  unit: "requests",
};

const SEND: SendRequest = {
  sendFrom: "num_000001",
  to: ["+14155550123"],
  messageType: "SMS",
  text: "Your order has been shipped and will be with you tomorrow.",
  externalReference: "order-1",
};

const ROUNDS = 21;
const WARM_UP_ROUNDS = 6;
const CALLS_A_ROUND = 1_000;
/** So many at once that this process is never idle: a round's time is then what its calls cost. */
const LANES = 16;
const HOUR_MS = 3_600_000;

export const clientGroup: Group = {
  names: [...CALLS.map(({ limit }) => limit.name), TOKENS.name],
  async run(wanted) {
    const server = startChild("client-server");
    try {
      const ask = <Answer>(question: ClientServerQuestion) => server.ask<Answer>({ ask: question });
      const baseUrl = `http://127.0.0.1:${await ask<number>("listen")}`;
      const rows: Row[] = [];
      for (const { limit, path, call } of CALLS) {
        if (!wanted.has(limit.name)) continue;
        const client = clientOf(baseUrl);
        rows.push(await compare(limit, () => call(client), await bareCall(baseUrl, path)));
      }
      if (wanted.has(TOKENS.name)) rows.push(await tokenRequests(baseUrl, server));
      return rows;
    } finally {
      await server.stop();
    }
  },
};

function clientOf(baseUrl: string, clock = {}): Client {
  return createClient({ baseUrl, clientId: "client", clientSecret: "secret", logger: silentLogger, ...clock });
}

/** What a user would write without a client, who has a token already and checks nothing but the status. */
async function bareCall(baseUrl: string, path: string): Promise<() => Promise<unknown>> {
  const issued = await fetch(`${baseUrl}/api/auth/token`, { method: "POST" });
  const { access_token } = (await issued.json()) as { access_token: string };
  const isSend = path.endsWith("/send");
  let key = 0;
  return async () => {
    const headers = {
      accept: "application/json",
      authorization: `Bearer ${access_token}`,
      ...(isSend ? { "content-type": "application/json", "idempotency-key": `key-${++key}` } : {}),
    };
    const init = isSend ? { method: "POST", headers, body: JSON.stringify(SEND) } : { headers };
    const response = await fetch(`${baseUrl}${path}`, init);
    if (!response.ok) throw new Error(`${path} answered ${response.status}.`);
    return response.json();
  };
}

/** Each side a round, in turn. */
async function compare(limit: Limit, ours: () => Promise<unknown>, theirs: () => Promise<unknown>): Promise<Row> {
  const times: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    for (const [side, call] of [["ours", ours] as const, ["theirs", theirs] as const]) {
      const time = await timeOf(call);
      if (round >= 0) times[side].push(time);
    }
  }
  const each = (values: readonly number[]) => median(values).toFixed(0);
  return row(limit, ratioOf(times.ours, times.theirs), `${each(times.ours)} / ${each(times.theirs)} µs a call`);
}

/** Microseconds of processor time of one call, on average: other work on the machine takes the clock's time, but not this. */
async function timeOf(call: () => Promise<unknown>): Promise<number> {
  let left = CALLS_A_ROUND;
  const lane = async () => {
    while (left-- > 0) await call();
  };
  const start = process.cpuUsage();
  await Promise.all(Array.from({ length: LANES }, lane));
  const { user, system } = process.cpuUsage(start);
  return (user + system) / CALLS_A_ROUND;
}

async function tokenRequests(baseUrl: string, server: Child): Promise<Row> {
  const ask = () => server.ask<number>({ ask: "token requests" satisfies ClientServerQuestion });
  const clock = createFakeClock();
  const client = clientOf(baseUrl, { clock });
  await client.whoami();
  await clock.advance(HOUR_MS);
  const before = await ask();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: 1_000 }, () => client.whoami()));
  const asked = (await ask()) - before;
  // None would mean that the token had not ended, so that nothing was measured.
  if (asked === 0) throw new Error("No token was asked for, though the old one had ended.");
  return row(TOKENS, asked, `${grouped(performance.now() - startedAt)} ms for all`);
}
