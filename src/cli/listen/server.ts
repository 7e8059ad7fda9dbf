/** The HTTP server of `oncehook listen`: the webhooks, and what a supervisor asks. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { nodeWebhook } from "../../../adapters/node.ts";
import { urlHostOf } from "../../emulator/host.ts";
import type { HealthReason, Receiver } from "../../index.ts";
import { cannotListen, isListenError } from "../cannot-listen.ts";
import { closeServer } from "../close-server.ts";

export interface Place {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** Where webhooks are received. */
  readonly path: string;
}

export interface Serving {
  /** Where webhooks are received. */
  readonly url: string;
  /** Takes no new connection, answers what is under way, and resolves when the last connection has ended, in 15 s at most. */
  close(): Promise<void>;
}

/** A body may take 10 s, and its answer a moment. */
const CLOSE_LIMIT_MS = 15_000;

/** Says that the process answers, and asks nobody: a restart mends no disk and no database. */
const HEALTH = "/healthz";
/** Says whether deliveries are accepted. */
const READINESS = "/readyz";
/** Reasons for which they are not. All others wait for a person, and sending deliveries elsewhere would mend nothing. */
const UNREADY: readonly HealthReason[] = ["stopped", "store_unavailable"];

/** @throws CommandError when it cannot listen there */
export async function serve(receiver: Receiver<never>, { host, port, path }: Place): Promise<Serving> {
  let isClosing = false;
  const webhook = nodeWebhook(receiver);
  const server = createServer((request, response) => {
    // A sender that always has more to say would hold up the end, and so would a connection that is kept for more.
    if (isClosing) response.setHeader("connection", "close");
    else response.once("finish", () => isClosing && setImmediate(() => server.closeIdleConnections()));
    const asked = pathOf(request);
    if (asked === path) webhook(request, response);
    else if (asked === HEALTH) answerTo(request, response, () => send(response, 200, { status: "ok" }));
    else if (asked === READINESS) answerTo(request, response, () => void sendReadiness(response, receiver, isClosing));
    else send(response, 404, { error: "not_found" });
  });
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    if (!isListenError(error)) throw error;
    const isPort = error.code === "EADDRINUSE" || error.code === "EACCES";
    throw cannotListen({ host, port, option: isPort ? "port" : "host" }, error);
  }
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://${urlHostOf(host)}:${bound}${path}`,
    close() {
      isClosing = true;
      return closeServer(server, CLOSE_LIMIT_MS);
    },
  };
}

function pathOf({ url = "" }: IncomingMessage): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

function answerTo({ method }: IncomingMessage, response: ServerResponse, answer: () => void): void {
  if (method === "GET" || method === "HEAD") answer();
  else send(response, 405, { error: "method_not_allowed" }, { allow: "GET, HEAD" });
}

async function sendReadiness(response: ServerResponse, receiver: Receiver<never>, isClosing: boolean): Promise<void> {
  const health = await receiver.health();
  const isReady = !isClosing && !health.reasons.some((reason) => UNREADY.includes(reason));
  send(response, isReady ? 200 : 503, health);
}

function send(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  const bytes = Buffer.from(JSON.stringify(body));
  const own = { "content-type": "application/json", "content-length": bytes.length, "cache-control": "no-store" };
  response.writeHead(status, { ...own, ...headers }).end(bytes);
}
