/** An application that events are posted to: it keeps what it got and answers as it is told. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { onTestFinished } from "vitest";
import { listenOnLoopback } from "../../support/loopback.ts";

export interface Posted {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

export type Answering = (response: ServerResponse, posted: Posted) => void;

export interface Application {
  readonly url: string;
  readonly got: Posted[];
  /** The connections that were opened to it, ended ones included. */
  readonly connections: Socket[];
}

/** On a free port; it ends with the test. */
export async function startApplication(answer: Answering = answerWith(204)): Promise<Application> {
  const got: Posted[] = [];
  const connections: Socket[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url: path, headers } = request;
    const posted = { method, path, headers, body: Buffer.concat(chunks) };
    got.push(posted);
    answer(response, posted);
  });
  server.on("connection", (socket) => connections.push(socket));
  const port = await listenOnLoopback(server);
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${port}/events?from=oncehook`, got, connections };
}

/** The same answer each time. */
export function answerWith(status: number, headers: Record<string, string> = {}): Answering {
  return (response) => response.writeHead(status, headers).end();
}
