/** An inspector over HTTP, beside a receiver whose handlers fail where a message's id says so. */
import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { onTestFinished } from "vitest";
import type { EventSummary } from "../../../../src/inbox/record.ts";
import {
  createReceiver,
  type InboxStore,
  PermanentError,
  type Receiver,
  type ReceiverOptions,
  RetryAfter,
  type WebhookEvent,
} from "../../../../src/index.ts";
import { type Access, createInspector, type Grant } from "../../../../src/tools/inspector/index.ts";
import { incoming, type LogLine, recordedLog, SECRET } from "../../../receiver/bench.ts";
import { inbound, outbound } from "../../../receiver/events.ts";
import { turn } from "../../../stores/sqlite-turns.ts";
import { mounted, POST_HEADERS, type Response } from "../support/mounted.ts";

export type MakeStore = () => InboxStore<never>;

export const NUMBER = "+15550100002";
export const TEXT = "Ring me at home";

export interface RouteScene {
  readonly receiver: Receiver<never>;
  readonly log: LogLine[];
  /** Handlers no longer fail. */
  mend(): void;
  deliver(body: string): Promise<void>;
  /** Delivers, and waits until nothing is handled. */
  settle(...bodies: readonly string[]): Promise<void>;
  /** Puts a body into the quarantine, as one that another version did not understand; or of a secret of these kinds. */
  quarantine(body: string, kinds?: readonly string[]): Promise<void>;
  get(path: string, access?: Access): Promise<Response>;
  post(path: string, body?: unknown, access?: Access): Promise<Response>;
  /** The same, with a body as it is written. */
  postText(path: string, body: string, access?: Access): Promise<Response>;
  /** The number of a message's lane. */
  laneOf(messageId: string): Promise<number>;
}

export async function openScene(
  store: InboxStore<never>,
  options: Partial<ReceiverOptions<never>> = {},
): Promise<RouteScene> {
  const { log, logger } = recordedLog();
  const receiver = createReceiver<never>({ secrets: SECRET, logger, store, ...options });
  onTestFinished(() => receiver.stop());
  let isMended = false;
  receiver.onAny((event, { attempt }) => {
    if (!isMended) failAsNamed(event, attempt);
  });
  await receiver.start();
  const { inbox } = receiver;
  const server = await mounted((origin) => createInspector({ inbox, authorize, origins: [origin], logger }));
  const postText = (path: string, body: string, access: Access = "act") =>
    server.ask({
      ...{ method: "POST", url: `/inspector/api/${path}`, body },
      headers: { ...POST_HEADERS, origin: server.origin, "x-right": access },
    });
  const deliver = async (body: string) => void (await receiver.handle(incoming(body, Date.now())));
  return {
    ...{ receiver, log, deliver },
    mend: () => {
      isMended = true;
    },
    async settle(...bodies) {
      for (const body of bodies) {
        await deliver(body);
        await untilQuiet(receiver);
      }
      await untilQuiet(receiver);
    },
    async quarantine(body, kinds = []) {
      const raw = Buffer.from(body);
      const origin = { source: "service", tenant: null, slot: "current", signer: "s", kinds } as const;
      const facts = { ...origin, reason: "invalid_json", signedAt: Date.now(), trace: null };
      await store.step(turn<never>({ quarantines: [{ ...facts, digest: hash("sha256", raw, "buffer"), raw }] }));
    },
    get: (path, access = "read") => server.ask({ url: `/inspector/api/${path}`, headers: { "x-right": access } }),
    post: (path, body = {}, access = "act") => postText(path, JSON.stringify(body), access),
    postText,
    async laneOf(messageId) {
      return (await newestOf(inbox, messageId))?.laneId ?? 0;
    },
  };
}

/** The newest event of a message, outbound or inbound. */
export async function newestOf(inbox: Receiver<never>["inbox"], messageId: string): Promise<EventSummary | undefined> {
  const [ofLane] = (await inbox.find({ lane: messageId, limit: 1 })).items;
  return ofLane ?? (await inbox.find({ id: messageId, limit: 1 })).items[0];
}

/** Messages in order, out of order, with a gap, with retries and with a dead letter; an inbound one, and a quarantined body. */
export async function fill(scene: RouteScene): Promise<void> {
  const { settle } = scene;
  const of = (messageId: string) => (kind: Parameters<typeof outbound>[0]) => outbound(kind, { messageId, to: NUMBER });
  await settle(...(["delivery", "sent", "queued", "queued"] as const).map(of("msg_order")));
  await settle(...(["queued", "delivery"] as const).map(of("msg_gap")));
  await scene.receiver.inbox.releaseGap(await scene.laneOf("msg_gap"));
  await settle(of("msg_gap")("sent"));
  await settle(...(["queued", "sent"] as const).map(of("msg_retry")));
  await settle(...(["queued", "sent"] as const).map(of("msg_dead")));
  await settle(inbound({ messageId: "msg_in", from: NUMBER, text: TEXT }));
  await settle(`{"to": "${NUMBER}", "text": "${TEXT}"`);
  // Repeats are counted a while later.
  await until(async () => (await scene.receiver.inbox.stats()).counters.duplicates === 1);
}

function authorize({ headers }: IncomingMessage): Grant {
  const access = headers["x-right"] as Access | undefined;
  return access === undefined ? false : { access, by: "ann" };
}

function failAsNamed({ eventType, ...event }: WebhookEvent, attempt: number): void {
  const { messageId } = event as { messageId?: string };
  if (eventType === "message.inbound") return;
  if (messageId?.startsWith("msg_blocked")) throw new PermanentError("No order 17");
  if (eventType !== "message.sent") return;
  if (messageId === "msg_retry" && attempt === 1) throw new RetryAfter(0, `${NUMBER} does not answer`);
  if (messageId?.startsWith("msg_dead")) throw new PermanentError(`No order 17 for ${NUMBER}`);
}

/** Nothing is being handled, or about to be. */
function untilQuiet({ inbox }: Receiver<never>): Promise<void> {
  const working = { statuses: ["ready", "leased", "backoff"], limit: 1 } as const;
  return until(async () => (await inbox.findLanes(working)).items.length === 0);
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 10_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error("It did not happen in time.");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
