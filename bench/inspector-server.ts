/** A receiver with its inspector, a process of its own: `node inspector-server.js MESSAGES MODE`, three events each before it listens. */

import { openDesk } from "../test/tools/inspector/browser/support/desk.ts";
import { fillWithCopies } from "../test/tools/inspector/browser/support/fill.ts";
import { answerParent } from "./child.ts";
import { SECRET } from "./deliveries.ts";

/** `accept` only stores, as where the cost of accepting is measured. */
export type InspectedMode = "accept" | "handle";
export type InspectedQuestion = "listen" | "begin" | "processor";

const [messages, mode] = process.argv.slice(2);
let processor = process.cpuUsage();

answerParent<{ ask: InspectedQuestion }>(async ({ ask }) => {
  switch (ask) {
    case "listen": {
      const fill = (path: string) => fillWithCopies(path, { messages: Number(messages), dead: 100 });
      const desk = await openDesk({ fill, live: mode === "handle", secret: SECRET });
      return desk.origin;
    }
    case "begin":
      processor = process.cpuUsage();
      return 0;
    case "processor": {
      const { user, system } = process.cpuUsage(processor);
      return user + system;
    }
    default:
      return ask satisfies never;
  }
});
