/** Deliveries as the service sends them, each another event, signed ahead of time. */
import { randomBytes } from "node:crypto";
import { signPayload } from "../src/index.ts";

export const SECRET = "benchmark-secret-of-32-characters";

const TYPES = ["message.queued", "message.sent", "message.delivery"];
const STATUSES = ["QUEUED", "sent", "delivered"];

/** Unlike in every run, so that nothing is a duplicate; grows with time, as the ids of most services do. */
let messages = Date.now() * 1000;
/** What processes that run at once differ in. */
const OWN = process.pid.toString(36).padStart(5, "0");

/** The id of a message that no other call gives, in any process. */
export function nextMessageId(): string {
  messages += 1;
  return `msg_${messages.toString(36)}${OWN}`;
}

/** An id without order. */
export function randomMessageId(): string {
  return `msg_${randomBytes(11).toString("hex")}`;
}

export function bodyOf(messageId: string, sequence = 1): Buffer {
  const data = {
    messageId,
    externalReference: `order-${messageId.slice(-8)}`,
    sendFrom: "+14155550100",
    to: "+14155550101",
    status: STATUSES[sequence - 1],
    error: null,
    ...(sequence === 3 ? { providerMessageRef: `prov-${messageId.slice(-8)}` } : {}),
  };
  const event = { eventType: TYPES[sequence - 1], direction: "outbound", occurredAt: Date.now(), apiClientId: "apc_1" };
  return Buffer.from(JSON.stringify({ ...event, messageId, sequence, data }));
}

/** `count` whole HTTP requests. With `lifecycles`, three events of each message, thousands of requests apart. */
export function requests(count: number, lifecycles: boolean): Buffer[] {
  if (!lifecycles) return Array.from({ length: count }, () => request(bodyOf(nextMessageId())));
  const ids = Array.from({ length: Math.ceil(count / 3) }, nextMessageId);
  return [1, 2, 3].flatMap((sequence) => ids.map((id) => request(bodyOf(id, sequence))));
}

function request(body: Buffer): Buffer {
  const headers = signPayload({ body, secret: SECRET });
  const head = [
    "POST /webhooks HTTP/1.1",
    "Host: 127.0.0.1",
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
}
