/** What `oncehook inspect` does from its flags to its end. */
import { nodeInspector } from "../../../adapters/node.ts";
import { createInspector } from "../../inspector/index.ts";
import { createLoopbackSession, LINK_MS } from "../../inspector/loopback.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { actorOf } from "../inbox/acting.ts";
import { openAt } from "../inbox/opening.ts";
import { endingSignal } from "../signals.ts";
import { Terminal } from "../terminal.ts";
import type { InspectFlags } from "./flags.ts";
import { listenOnLoopback } from "./server.ts";

/** Where a person may press Enter: standard input, if that is a terminal. */
type Keyboard = Pick<NodeJS.ReadStream, "isTTY" | "on" | "off" | "pause">;

/** Resolves with the exit code once it has ended. @throws what `inWords` tells */
export async function inspect(flags: InspectFlags, keyboard: Keyboard = process.stdin): Promise<number> {
  const inbox = await openAt(flags);
  try {
    await serveUntilSignal(inbox, flags, keyboard);
  } finally {
    await inbox.close();
  }
  return 0;
}

async function serveUntilSignal(inbox: Inbox, flags: InspectFlags, keyboard: Keyboard): Promise<void> {
  const loopback = await listenOnLoopback(flags.port);
  const session = createLoopbackSession({ port: loopback.port, access: flags.access, ...actorOf(flags) });
  const { path, origins, authorize } = session;
  const inspector = createInspector({ inbox, path, origins, authorize });
  loopback.serve(nodeInspector(session.mount(inspector)));
  // Heard from before the first line is out: whoever reads it may send one.
  const signal = endingSignal();
  try {
    await linksUntil(signal, () => session.link(), { terminal: new Terminal(flags), keyboard });
  } finally {
    inspector.close();
    await loopback.close();
  }
}

/** Prints a link, and another one each time somebody presses Enter. @throws when nobody reads them any more */
async function linksUntil(
  signal: Promise<unknown>,
  link: () => string,
  { terminal, keyboard }: { readonly terminal: Terminal; readonly keyboard: Keyboard },
): Promise<void> {
  const print = () => {
    const inspecting = link();
    return terminal.result({ inspecting }, () => `Open ${inspecting}`);
  };
  let fail: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  const pressed = () => void print().catch(fail);
  // Others than a terminal may have something to read for whoever comes after this command.
  if (keyboard.isTTY) keyboard.on("data", pressed);
  try {
    await print();
    terminal.note(remark(keyboard.isTTY));
    await Promise.race([signal, failed]);
  } finally {
    keyboard.off("data", pressed);
    // Else it would keep the process.
    if (keyboard.isTTY) keyboard.pause();
  }
}

function remark(isTerminal: boolean): string {
  const enter = isTerminal ? " Enter prints a fresh one." : "";
  return `The link can be opened once, within ${LINK_MS / 1_000} s.${enter} Ctrl-C ends it.`;
}
