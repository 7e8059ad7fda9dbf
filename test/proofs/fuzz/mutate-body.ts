/** What is done to the body of a signed request, whose headers stay as they are. */
import type { Dice } from "./dice.ts";
import type { Signed } from "./signed.ts";

type MutateBody = (body: Buffer, dice: Dice, pool: readonly Signed[]) => Buffer;

export const BODY_MUTATIONS: Readonly<Record<string, MutateBody>> = {
  "body, bit flipped": flipBit,
  "body, truncated": (body, dice) => {
    const length = dice.below(body.length);
    return dice.isOneIn(2) ? body.subarray(0, length) : body.subarray(body.length - length);
  },
  "body, part doubled": (body, dice) => {
    const from = dice.below(body.length + 1);
    const to = from + dice.below(Math.min(64, body.length - from + 1));
    return Buffer.concat([body.subarray(0, to), body.subarray(from)]);
  },
  "body, part cut out": (body, dice) => {
    const from = dice.below(body.length + 1);
    return Buffer.concat([body.subarray(0, from), body.subarray(from + 1 + dice.below(8))]);
  },
  "body, bytes put in": (body, dice) => {
    const at = dice.below(body.length + 1);
    return Buffer.concat([body.subarray(0, at), dice.bytes(1 + dice.below(4)), body.subarray(at)]);
  },
  "body, another's": (_, dice, pool) => dice.pick(pool).body,
  "body, something around it": (body, dice) => {
    const extra = Buffer.from(dice.pick([" ", "\n", "\r\n", "\0", "\ufeff", "\t", "}", "\u200b"]));
    return dice.isOneIn(2) ? Buffer.concat([body, extra]) : Buffer.concat([extra, body]);
  },
  "body, serialised again": reserialise,
  "body, decodes alike": decodeAlike,
  "body, in another encoding": (body, dice) => {
    const text = body.toString();
    const other = [
      () => Buffer.from(text, "latin1"),
      () => Buffer.from(text, "utf16le"),
      () => Buffer.from(text.normalize(dice.pick(["NFC", "NFD", "NFKC"]))),
      () => Buffer.from(text.replace(/\n/g, "\r\n")),
      () => Buffer.from(body.toString("base64")),
    ];
    return dice.pick(other)();
  },
};

export function flipBit(bytes: Buffer, dice: Dice): Buffer {
  const flipped = Buffer.from(bytes);
  if (flipped.length === 0) return Buffer.of(dice.below(256));
  const bit = dice.below(flipped.length * 8);
  flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return flipped;
}

/** The same value in another text; what is no JSON gets a byte more. */
function reserialise(body: Buffer, dice: Dice): Buffer {
  try {
    const value: unknown = JSON.parse(body.toString());
    const texts = [
      () => JSON.stringify(value),
      () => JSON.stringify(value, null, 1 + dice.below(4)),
      () => JSON.stringify(sorted(value)),
      () => body.toString().replace(/[eo]/, (char) => `\\u00${char.charCodeAt(0).toString(16)}`),
      () => `${body.toString()} `,
      () => body.toString().replace(/:/, ": "),
    ];
    return Buffer.from(dice.pick(texts)());
  } catch {
    return Buffer.concat([body, Buffer.from(" ")]);
  }
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? 1 : -1)));
}

/** Other bytes that a lenient decoder turns into the same text: for U+FFFD, a byte that is none; for anything, a byte order mark. */
function decodeAlike(body: Buffer, dice: Dice): Buffer {
  const at = body.indexOf("\ufffd");
  if (at === -1) return Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), body]);
  return Buffer.concat([body.subarray(0, at), Buffer.of(dice.pick([0xff, 0xc0, 0x80, 0xfe])), body.subarray(at + 3)]);
}
