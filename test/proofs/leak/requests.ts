/** Requests that take every way through a receiver; each carries marks in all it can hold. */
import { type BodyResult, type IncomingWebhook, signPayload } from "../../../src/index.ts";
import { inbound, outbound } from "../../receiver/events.ts";
import { MARKS, pick } from "./marks.ts";

/** The secrets that count at some moment. */
export interface Signers {
  readonly current: string;
  readonly previous: string;
  readonly next: string;
}

const FOREIGN = pick(MARKS.secrets, 9);
const KINDS = 11;

/** The bodies of request `index`: every kind of event, some of them again, changed, late or no event at all. */
function bodyOf(index: number): string {
  const number = pick(MARKS.numbers, index);
  const text = pick(MARKS.texts, index * 7);
  // A message's events come in another order each time.
  const message = { messageId: `out_${Math.floor(index / 97)}`, to: number, extra: { note: text } };
  switch (index % KINDS) {
    case 0:
    case 1:
      return inbound({ messageId: `in_${index}`, from: number, text });
    // Again and again, each time with another text.
    case 2:
      return inbound({ messageId: `in_${index % 3}`, from: number, text });
    case 3:
      return outbound("delivery", message);
    case 4:
      return outbound("queued", message);
    case 5:
      return outbound("failed", { ...message, messageId: `failed_${index}`, errorMessage: text });
    case 6:
      return outbound("sent", { messageId: `sent_${index}`, to: number, extra: { note: text } });
    case 7:
      return JSON.stringify({ eventType: "message.new", data: { text, to: number, n: index } });
    case 8:
      return JSON.stringify({ eventType: "message.inbound", data: { body: text, from: number, n: index } });
    case 9:
      return `junk ${number} ${text} ${index}`;
    default:
      return JSON.stringify({ eventType: "message.inbound", [text]: { [number]: text } });
  }
}

interface Wish {
  readonly secret?: string;
  readonly at?: number;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly unread?: Exclude<BodyResult, { ok: true }>["reason"];
}

/** How request `index` differs from an ordinary one; half of them do not. */
function wishOf(index: number, { current, previous, next }: Signers): Wish {
  const mark = pick([...MARKS.secrets, ...MARKS.texts.map((text) => encodeURIComponent(text))], index);
  const wishes: readonly Wish[] = [
    { secret: previous },
    { secret: next },
    { secret: FOREIGN },
    { at: 1_600_000_000_000 },
    { method: "GET" },
    { headers: { "content-length": "999999999" } },
    { headers: { "content-encoding": mark } },
    { headers: { "x-service-signature": mark } },
    { headers: { "x-service-timestamp": pick(MARKS.numbers, index) } },
    { headers: { "x-service-signature": undefined, "x-service-timestamp": undefined, authorization: mark } },
    { headers: { traceparent: mark, tracestate: mark, cookie: mark } },
    { headers: { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` } },
    { unread: "too_large" },
    { unread: "truncated" },
    { unread: "cut" },
    { unread: "already_parsed" },
  ];
  return index % 2 === 0 ? { secret: current } : { secret: current, ...pick(wishes, (index - 1) / 2) };
}

export function requestOf(index: number, now: number, signers: Signers): IncomingWebhook {
  const bytes = Buffer.from(bodyOf(index));
  const { secret = signers.current, at = now, method = "POST", headers, unread } = wishOf(index, signers);
  return {
    method,
    headers: { ...signPayload({ body: bytes, secret, timestamp: at }), ...headers },
    readBody: (): BodyResult => (unread === undefined ? { ok: true, bytes } : { ok: false, reason: unread }),
  };
}
