/** Processes on one inbox, each behind a port of its own, and the same request to all of them at once. */
import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";
import { type SignedRequest, signedRequest } from "../../../src/testing/index.ts";
import { Child } from "../../concurrency/family.ts";
import type { PostgresPlace } from "../postgres-inbox.ts";
import { isOfStripe, type SourceName } from "../sources.ts";

/** Beside this file, where it was compiled to. */
const PROGRAM = fileURLToPath(new URL("./child.js", import.meta.url));

export type RacePlace =
  | { readonly kind: "sqlite"; readonly path: string }
  | ({ readonly kind: "postgres" } & PostgresPlace);

export interface RacerOptions {
  readonly place: RacePlace;
  /** Looks and then inserts. */
  readonly naive: boolean;
}

/** What a request was answered with; status 0 for none. */
export interface Answered {
  readonly status: number;
  readonly outcome: string;
}

export class Racers {
  readonly #children: Child[];
  readonly #ports: readonly number[];
  readonly #agents: readonly Agent[];

  private constructor(children: Child[], ports: readonly number[], connections: number) {
    this.#children = children;
    this.#ports = ports;
    this.#agents = ports.map(() => new Agent({ keepAlive: true, maxSockets: connections }));
  }

  /** Rejects when one of them does not get ready; none is left then. */
  static async start(count: number, options: RacerOptions, connections: number): Promise<Racers> {
    const children = Array.from({ length: count }, () => new Child(options, PROGRAM));
    try {
      const said = await Promise.all(children.map(({ ready }) => ready));
      const ports = said.map((message) => (message as [{ readonly port: number }])[0].port);
      return new Racers(children, ports, connections);
    } catch (error) {
      await Promise.all(children.map((child) => child.kill()));
      throw error;
    }
  }

  /** Sends `event` so many times at once, to each in turn, written in several ways that mean the same. */
  send(source: SourceName, event: object, times: number): Promise<readonly Answered[]> {
    return Promise.all(
      Array.from({ length: times }, (_, copy) => {
        const process = copy % this.#ports.length;
        const content = JSON.stringify(event, null, copy % 3);
        const signed = signedRequest(content, isOfStripe(source) ? { source: "stripe" } : {});
        return post(this.#ports[process] ?? 0, `/${source}`, this.#agents[process] ?? new Agent(), signed);
      }),
    );
  }

  /** Lets them end what they do; a line for each that ended otherwise than it was told to. */
  async stop(): Promise<readonly string[]> {
    for (const agent of this.#agents) agent.destroy();
    await Promise.all(this.#children.map((child) => child.stop()));
    return this.#children.flatMap(({ strangeEnd }) => (strangeEnd === null ? [] : [`a process ${strangeEnd}`]));
  }
}

function post(port: number, path: string, agent: Agent, { headers, body, method }: SignedRequest): Promise<Answered> {
  const sent = { ...headers, "content-length": body.byteLength };
  return new Promise((resolve) => {
    const none = () => resolve({ status: 0, outcome: "" });
    const outgoing = request({ host: "127.0.0.1", port, path, agent, method, headers: sent }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.once("end", () => resolve({ status: response.statusCode ?? 0, outcome: outcomeIn(text) }));
      response.once("error", none);
    });
    outgoing.once("error", none).end(body);
  });
}

function outcomeIn(text: string): string {
  try {
    return (JSON.parse(text) as { readonly outcome?: string }).outcome ?? "";
  } catch {
    return "";
  }
}
