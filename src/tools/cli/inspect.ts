/** `oncehook inspect`: the page that shows what happened to a message, for one person on this machine. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { Command, Option } from "commander";
import type { Inbox } from "../../receiver/open-inbox.ts";
import type { Access } from "../inspector/api.ts";
import { cannotListen, closeServer, endingSignal, isListenError } from "./exit.ts";
import {
  type ActFlags,
  actorOf,
  addByFlag,
  type InboxFlags,
  inWords,
  openAt,
  wholeNumber,
  withInboxFlags,
} from "./flags.ts";
import { Terminal } from "./terminal.ts";

const EXAMPLES = ["oncehook inspect --store inbox.db", "oncehook inspect --store inbox.db --access read --port 4000"];

/** The command, for the program. */
export function inspectCommand(): Command {
  const command = new Command("inspect")
    .description("open a page that shows an inbox, for one person on this machine")
    .addOption(port())
    .addOption(access());
  return withInboxFlags(addByFlag(command), EXAMPLES).action(async (flags: InspectFlags) => {
    process.exitCode = await run(flags);
  });
}

async function run(flags: InspectFlags): Promise<number> {
  try {
    return await inspect(flags);
  } catch (error) {
    throw inWords(error);
  }
}

function port(): Option {
  return new Option("--port <number>", "TCP port on 127.0.0.1; 0 picks a free one")
    .default(0)
    .argParser(wholeNumber(0, 65_535));
}

function access(): Option {
  const means = "what the page may do: read, act (replay, discard, …) or reveal (numbers and texts) too";
  return new Option("--access <right>", means).choices(["read", "act", "reveal"]).default("reveal");
}

// What the flags of `oncehook inspect` say.

interface InspectFlags extends InboxFlags, ActFlags {
  readonly port: number;
  readonly access: Access;
}

// What `oncehook inspect` does from its flags to its end.

/** Resolves with the exit code once it has ended. @throws what `inWords` tells */
async function inspect(flags: InspectFlags): Promise<number> {
  const inbox = await openAt(flags);
  try {
    await serveUntilSignal(inbox, flags);
  } finally {
    await inbox.close();
  }
  return 0;
}

async function serveUntilSignal(inbox: Inbox, flags: InspectFlags): Promise<void> {
  // Loaded here: "--help" needs none of it.
  const [{ nodeInspector }, { createInspector }, { createLoopbackSession, LINK_MS }] = await Promise.all([
    import("../../../adapters/node.ts"),
    import("../inspector/index.ts"),
    import("../inspector/access.ts"),
  ]);
  const loopback = await listenOnLoopback(flags.port);
  const session = createLoopbackSession({ port: loopback.port, access: flags.access, ...actorOf(flags) });
  const { path, origins, authorize } = session;
  const inspector = createInspector({ inbox, path, origins, authorize });
  loopback.serve(nodeInspector(session.mount(inspector)));
  // Listened to before the first line is printed: its reader may send one.
  const signal = endingSignal();
  try {
    await linksUntil(signal, () => session.link(), { terminal: new Terminal(flags), linkMs: LINK_MS });
  } finally {
    inspector.close();
    await loopback.close();
  }
}

/** Prints a link, and another one each time somebody presses Enter. @throws when nobody reads them any more */
async function linksUntil(
  signal: Promise<unknown>,
  link: () => string,
  { terminal, linkMs }: { readonly terminal: Terminal; readonly linkMs: number },
): Promise<void> {
  const keyboard = process.stdin;
  const print = () => {
    const inspecting = link();
    return terminal.result({ inspecting }, () => `Open ${inspecting}`);
  };
  let fail: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  const pressed = () => void print().catch(fail);
  // A pipe or a file may hold input for the next command.
  if (keyboard.isTTY) keyboard.on("data", pressed);
  try {
    await print();
    terminal.note(remark(keyboard.isTTY, linkMs));
    await Promise.race([signal, failed]);
  } finally {
    keyboard.off("data", pressed);
    // Else it would keep the process.
    if (keyboard.isTTY) keyboard.pause();
  }
}

function remark(isTerminal: boolean, linkMs: number): string {
  const enter = isTerminal ? " Enter prints a fresh one." : "";
  return `The link can be opened once, within ${linkMs / 1_000} s.${enter} Ctrl-C ends it.`;
}

// The HTTP server of `oncehook inspect`: on 127.0.0.1, and for nothing but requests.

interface Loopback {
  readonly port: number;
  /** Answers requests from now on. */
  serve(listener: RequestListener): void;
  /** Takes no new connection, and resolves when the last one has ended, a second from now at most. */
  close(): Promise<void>;
}

const HOST = "127.0.0.1";
const TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 5_000 };
/** What is under way was told to end before. */
const CLOSE_LIMIT_MS = 1_000;

/** @throws CommandError when it cannot listen there */
async function listenOnLoopback(port: number): Promise<Loopback> {
  let isClosing = false;
  const server = createServer(TIMEOUTS, (_request, response) => {
    // A connection that is kept for more would hold up the end.
    response.once("finish", () => isClosing && setImmediate(() => server.closeIdleConnections()));
  });
  // Without a listener an upgrade would be answered as if it were none.
  server.on("upgrade", (_request, socket) => socket.destroy());
  server.listen(port, HOST);
  try {
    await once(server, "listening");
  } catch (error) {
    if (!isListenError(error)) throw error;
    throw cannotListen({ host: HOST, port, option: "port" }, error);
  }
  return {
    port: (server.address() as AddressInfo).port,
    serve: (listener) => void server.on("request", listener),
    close() {
      isClosing = true;
      return closeServer(server, CLOSE_LIMIT_MS);
    },
  };
}
