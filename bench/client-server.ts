/** A service that costs next to nothing, a process of its own: ready-made answers, and a count of the token requests. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "./child.ts";

export type ClientServerQuestion = "listen" | "token requests";

const ANSWERS: ReadonlyMap<string, readonly [status: number, body: Buffer]> = new Map(
  Object.entries({
    "/api/auth/token": [200, { access_token: "a-token-of-the-usual-size", token_type: "bearer", expires_in: 3600 }],
    "/api/core/whoami": [
      200,
      {
        ...{ apiClientId: "ac_main", apiClientName: "Main client", apiClientStatus: "ACTIVE" },
        capabilities: ["numbers:read", "numbers:search", "numbers:update"],
        assignedNumbers: { total: 5, smsEnabledCount: 4, mmsEnabledCount: 3 },
        ...{ inboundWebhookConfigured: true, deliveryWebhookConfigured: false },
      },
    ],
    "/api/core/messages/send": [
      202,
      { results: [{ to: "+14155550123", messageId: "msg_4f2a91_000001", status: "QUEUED" }], errors: [] },
    ],
  }).map(([path, [status, body]]) => [path, [status as number, Buffer.from(JSON.stringify(body))]]),
);

let tokenRequests = 0;

const server = createServer((request, response) => {
  const path = request.url ?? "";
  if (path.endsWith("/token")) tokenRequests += 1;
  request.resume().on("end", () => {
    const [status, body] = ANSWERS.get(path) ?? [404, Buffer.from("{}")];
    response.writeHead(status, { "content-type": "application/json", "content-length": body.length }).end(body);
  });
});
// A connection that waits for the other side's round must not end meanwhile.
server.keepAliveTimeout = 60_000;

answerParent<{ ask: ClientServerQuestion }>(async ({ ask }) => {
  switch (ask) {
    case "listen":
      server.listen({ port: 0, host: "127.0.0.1", backlog: 2_048 });
      await once(server, "listening");
      return (server.address() as AddressInfo).port;
    case "token requests":
      return tokenRequests;
    default:
      return ask satisfies never;
  }
});
