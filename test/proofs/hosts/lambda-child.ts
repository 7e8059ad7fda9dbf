/** A function as AWS Lambda runs it: the guide's `handler`, called with the events of each kind of trigger. */
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Receiver } from "../../../src/index.ts";
import { answering, givenOptions } from "../process.ts";
import { eventOf, type Sent, type Trigger } from "./lambda-events.ts";

const { compiled } = givenOptions<{ compiled: string }>();
const load = (path: string) => import(pathToFileURL(path).href);

type Handler = (event: object, context: object) => Promise<{ readonly statusCode: number }>;

const { handler } = (await load(compiled)) as { handler: Handler };
const { receiver } = (await load(join(dirname(compiled), "receiver.js"))) as { receiver: Receiver<unknown> };
const context = { awsRequestId: "1", functionName: "webhooks", callbackWaitsForEmptyEventLoop: true };

answering(
  {
    send: async ({ trigger, request }: { trigger: Trigger; request: Sent }) =>
      (await handler(eventOf(trigger, request), context)).statusCode,
    /** As the scheduled function does. */
    drain: () => receiver.drain({ budgetMs: 20_000 }),
  },
  () => receiver.stop(),
);
