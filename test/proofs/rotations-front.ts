/** The web server before a receiver: it turns some deliveries away, and counts the answers to the others. */
import { createHash } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import { endServer, listenOnLoopback } from "../support/loopback.ts";

export interface Front {
  readonly url: string;
  /** By status; without what it turned away by itself. */
  readonly answered: ReadonlyMap<number, number>;
  readonly turnedAway: number;
  close(): Promise<void>;
}

export async function openFront(webhook: RequestListener): Promise<Front> {
  const answered = new Map<number, number>();
  const turnedAway = new Map<string, number>();
  const isTurnedAway = (body: Buffer) => {
    const name = createHash("sha256").update(body).digest();
    const before = turnedAway.get(name.toString("base64")) ?? 0;
    if (before >= timesToTurnAway(name.readUInt8(0))) return false;
    turnedAway.set(name.toString("base64"), before + 1);
    return true;
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const rawBody = Buffer.concat(chunks);
    if (isTurnedAway(rawBody)) return void response.writeHead(503).end();
    response.on("finish", () => answered.set(response.statusCode, (answered.get(response.statusCode) ?? 0) + 1));
    webhook(Object.assign(request, { rawBody }), response);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}/webhooks`,
    answered,
    get turnedAway() {
      return [...turnedAway.values()].reduce((sum, times) => sum + times, 0);
    },
    close: () => endServer(server),
  };
}

/** One event of a hundred comes with the last of its attempts only, 81 minutes later. */
function timesToTurnAway(dice: number): number {
  if (dice < 3) return 4;
  if (dice < 8) return 2;
  return dice < 20 ? 1 : 0;
}
