/** Deliveries as the service sends them, each another event, signed ahead of time. */
import { randomBytes } from "node:crypto";
import { signPayload } from "../src/index.ts";
import { signedRequest } from "../src/tools/testing/index.ts";

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

/** Who sends deliveries. */
export type Sender = "service" | "stripe";

/** `count` whole HTTP requests. With `lifecycles`, three events of each message of the service, thousands of requests apart. */
export function requests(count: number, lifecycles: boolean, sender: Sender = "service"): Buffer[] {
  if (sender === "stripe") return Array.from({ length: count }, stripeRequest);
  if (!lifecycles) return Array.from({ length: count }, () => serviceRequest(bodyOf(nextMessageId())));
  const ids = Array.from({ length: Math.ceil(count / 3) }, nextMessageId);
  return [1, 2, 3].flatMap((sequence) => ids.map((id) => serviceRequest(bodyOf(id, sequence))));
}

function serviceRequest(body: Buffer): Buffer {
  return request(signPayload({ body, secret: SECRET }), body);
}

/** An event of an object of its own, about as long as one of the service. */
function stripeRequest(): Buffer {
  const id = nextMessageId();
  const created = Math.floor(Date.now() / 1000);
  const object = { id: `in_${id}`, object: "invoice", customer: "cus_000001", status: "paid", total: 1_000 };
  const event = { id: `evt_${id}`, object: "event", created, type: "invoice.paid", livemode: true, data: { object } };
  const { headers, body } = signedRequest(event, { source: "stripe", secret: SECRET });
  return request({ "stripe-signature": headers["stripe-signature"] ?? "" }, body);
}

function request(signature: object, body: Uint8Array): Buffer {
  const head = [
    "POST /webhooks HTTP/1.1",
    "Host: 127.0.0.1",
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    ...Object.entries(signature).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
}
