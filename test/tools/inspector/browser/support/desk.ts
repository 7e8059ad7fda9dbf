/** The inspector of an inbox, served on loopback as an application would: with an `authorize` whose answer a test can change. */
import { copyFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { join } from "node:path";
import { nodeInspector, nodeWebhook } from "../../../../../adapters/node.ts";
import type { Logger } from "../../../../../src/internal/logger.ts";
import { createInspector, type Grant } from "../../../../../src/tools/inspector/index.ts";
import { listenOnLoopback } from "../../../../support/loopback.ts";
import { fillWithStories, liveReceiver, newFolder, type SceneReceiver } from "./scene.ts";

export interface Desk {
  /** `http://127.0.0.1:4711` */
  readonly origin: string;
  /** Of the page. */
  readonly url: string;
  readonly receiver: SceneReceiver;
  /** What `authorize` answers; may be changed. */
  grant: Grant;
  /** Nobody can look at the inbox as a whole, as when a database is down; may be changed. */
  isInboxDown: boolean;
  /** How often it was asked. */
  asked: number;
  /** `POST /inspector/api/events 403`, of every request there was. */
  readonly requests: string[];
  /** What was told at level info and above. */
  readonly told: Readonly<Record<string, unknown>>[];
  /** What comes of a restart: who looks is cut off, and finds another inspector. `meanwhile` there is none. */
  restart(meanwhile: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export interface DeskOptions {
  readonly grant?: Grant;
  /** Fills the inbox at a path. Default: with all stories. */
  readonly fill?: (path: string) => Promise<void>;
  /** Starts the receiver's worker. Default true. */
  readonly live?: boolean;
  /** Signs what comes to `/webhooks`. Default: `TEST_SECRET`. */
  readonly secret?: string;
}

/** The end is the caller's, who may be a test, a benchmark or the maker of pictures. */
export async function openDesk({
  grant = { access: "reveal", by: "alex" },
  fill = withStories,
  live = true,
  secret,
}: DeskOptions = {}) {
  const folder = await newFolder();
  const path = join(folder.path, "inbox.db");
  await fill(path);
  const receiver = liveReceiver(path, secret);
  if (live) await receiver.start();
  const server = createServer();
  const origin = await listen(server);
  const told: Record<string, unknown>[] = [];
  const tell: Logger["info"] = (fields, message) => void told.push({ ...fields, message });
  const stats = receiver.inbox.stats.bind(receiver.inbox);
  receiver.inbox.stats = async () => {
    if (desk.isInboxDown) throw new Error("The database is down.");
    return stats();
  };
  const makeInspector = () =>
    createInspector<IncomingMessage>({
      inbox: receiver.inbox,
      origins: [origin],
      logger: { debug() {}, info: tell, warn: tell, error: tell },
      authorize: () => {
        desk.asked += 1;
        return desk.grant;
      },
    });
  let inspector = makeInspector();
  const desk: Desk = {
    ...{ origin, url: `${origin}/inspector`, receiver, grant, isInboxDown: false, asked: 0, requests: [], told },
    async restart(meanwhile) {
      inspector.close();
      await meanwhile();
      inspector = makeInspector();
      page = nodeInspector(inspector);
    },
    async close() {
      inspector.close();
      server.close();
      server.closeAllConnections();
      await receiver.stop();
      await folder.remove();
    },
  };
  let page = nodeInspector(inspector);
  const webhook = nodeWebhook(receiver);
  server.on("request", (request, response) => {
    response.once("close", () => desk.requests.push(`${request.method} ${request.url} ${response.statusCode}`));
    (request.url === "/webhooks" ? webhook : page)(request, response);
  });
  return desk;
}

export async function listen(server: Server): Promise<string> {
  return `http://127.0.0.1:${await listenOnLoopback(server)}`;
}

let filled: Promise<string> | undefined;

/** A copy of an inbox that is filled once in a process. */
async function withStories(path: string): Promise<void> {
  filled ??= newFolder().then(async (folder) => {
    process.once("exit", () => void folder.remove());
    const template = join(folder.path, "inbox.db");
    await fillWithStories(template);
    return template;
  });
  await copyFile(await filled, path);
}
