/** What is done to the headers of a signed request, whose body stays as it is. */
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../../src/sources/messaging/sign.ts";
import type { Case } from "./case.ts";
import type { Dice } from "./dice.ts";
import { flipBit } from "./mutate-body.ts";
import { headersOf, NOW, type Signed, signedAt, TOLERANCE_MS } from "./signed.ts";

type Changed = Partial<Omit<Case, "kind">>;
type Mutate = (signed: Signed, dice: Dice, pool: readonly Signed[]) => Changed;

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64URL = `${BASE64.slice(0, 62)}-_`;
/** Characters that look like others, or that a careless reader takes for them. */
const LOOK_ALIKE: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries([..."0123456789"].map((digit, n) => [digit, alike(n)])),
  ...{ a: ["\u0430", "\uff41"], c: ["\u0441", "\uff43"], e: ["\u0435", "\uff45"], o: ["\u043e"], "=": ["\uff1d"] },
  ...{ b: ["\uff42"], d: ["\uff44"], f: ["\uff46"], s: ["\u0455", "\u017f"], v: ["\u03bd"], "+": ["\uff0b", " "] },
};

export const HEADER_MUTATIONS: Readonly<Record<string, Mutate>> = {
  "timestamp, edited": (signed, dice) => withHeader(signed, TIMESTAMP_HEADER, edited(signed.timestamp, dice)),
  "timestamp, look-alikes": (signed, dice) => withHeader(signed, TIMESTAMP_HEADER, lookAlike(signed.timestamp, dice)),
  "timestamp, the same time": (signed, dice) => withHeader(signed, TIMESTAMP_HEADER, sameTime(signed.timestamp, dice)),
  "timestamp, another's": (signed, dice, pool) => withHeader(signed, TIMESTAMP_HEADER, dice.pick(pool).timestamp),
  "timestamp, several": (signed, dice, pool) => ({
    headers: {
      ...headersOf(signed),
      [TIMESTAMP_HEADER]: [signed.timestamp, dice.isOneIn(2) ? signed.timestamp : dice.pick(pool).timestamp],
    },
  }),
  "split at another dot": splitElsewhere,
  "too old or from the future": outOfTime,
  "signature, edited": (signed, dice) => withHeader(signed, SIGNATURE_HEADER, edited(signed.signature, dice)),
  "signature, look-alikes": (signed, dice) => withHeader(signed, SIGNATURE_HEADER, lookAlike(signed.signature, dice)),
  "signature, its beginning only": beginningOnly,
  "signature, truncated": (signed, dice) => {
    const length = dice.below(signed.signature.length);
    const start = dice.isOneIn(2) ? 0 : signed.signature.length - length;
    return withHeader(signed, SIGNATURE_HEADER, signed.signature.slice(start, start + length));
  },
  "signature, another spelling of base64": malleable,
  "signature, case": (signed, dice) =>
    withHeader(
      signed,
      SIGNATURE_HEADER,
      [...signed.signature].map((char) => (dice.isOneIn(2) ? char.toUpperCase() : char.toLowerCase())).join(""),
    ),
  "signature, in another encoding": (signed, dice) =>
    withHeader(signed, SIGNATURE_HEADER, signed.bytes.toString(dice.pick(["hex", "base64", "base64url", "latin1"]))),
  "signature, a prefix": (signed, dice) => {
    const prefix = dice.pick(["sha256=", "v1=", "v1,", "SHA256=", "sha512=", "v0=", "sha256:", "t=1,v1=", "=", "v1, "]);
    return withHeader(signed, SIGNATURE_HEADER, `${prefix}${signed.bytes.toString(dice.pick(["hex", "base64"]))}`);
  },
  "signature, a list": (signed, dice, pool) => ({ headers: { ...headersOf(signed), ...list(signed, dice, pool) } }),
  "signature, another's": (signed, dice, pool) => withHeader(signed, SIGNATURE_HEADER, dice.pick(pool).signature),
  "header left out": (signed, dice) => {
    const name = dice.pick([TIMESTAMP_HEADER, SIGNATURE_HEADER]);
    return { headers: Object.fromEntries(Object.entries(headersOf(signed)).filter(([each]) => each !== name)) };
  },
  "headers exchanged": ({ timestamp, signature }) => ({
    headers: headersOf({ timestamp: signature, signature: timestamp }),
  }),
  "header names": (signed, dice) => ({
    headers: Object.fromEntries(
      Object.entries(headersOf(signed)).map(([name, value]) => [
        dice.isOneIn(8)
          ? name.replaceAll("-", "_")
          : [...name].map((c) => (dice.isOneIn(2) ? c.toUpperCase() : c)).join(""),
        value,
      ]),
    ),
  }),
};

function withHeader(signed: Signed, name: string, value: string): Changed {
  return { headers: { ...headersOf(signed), [name]: value } };
}

/** Fullwidth, Arabic-Indic, Devanagari and mathematical digits. */
function alike(digit: number): readonly string[] {
  return [0xff10, 0x0660, 0x0966, 0x1d7ce].map((zero) => String.fromCodePoint(zero + digit));
}

function lookAlike(text: string, dice: Dice): string {
  const places = [...text].flatMap((char, index) => (char in LOOK_ALIKE ? [index] : []));
  const at = dice.pick(places.length > 0 ? places : [0]);
  return `${text.slice(0, at)}${dice.pick(LOOK_ALIKE[text[at] ?? ""] ?? ["\u0430"])}${text.slice(at + 1)}`;
}

function edited(text: string, dice: Dice): string {
  const at = dice.below(text.length + 1);
  const char = String.fromCharCode(dice.isOneIn(4) ? dice.below(0x250) : 0x20 + dice.below(0x5f));
  const edits = [
    () => flipBit(Buffer.from(text, "latin1"), dice).toString("latin1"),
    () => `${text.slice(0, at)}${char}${text.slice(at)}`,
    () => `${text.slice(0, at)}${text.slice(at + 1)}`,
    () => `${text.slice(0, at)}${char}${text.slice(at + 1)}`,
    () => `${dice.pick([" ", "\t", "", "+", "0"])}${text}${dice.pick([" ", "", "0", ",", "\0", ".0"])}`,
    () => text + text,
  ];
  return dice.pick(edits)();
}

function sameTime(text: string, dice: Dice): string {
  const ms = text.length === 13 ? Number(text) : Number(text) * 1000;
  const texts = [`${ms}`, `${Math.floor(ms / 1000)}`, `0${text}`, `+${text}`, `${text}.0`, ` ${text}`, `${ms}000`];
  return dice.pick([...texts, `0x${ms.toString(16)}`, ms.toExponential(), new Date(ms).toISOString(), `${text}.`]);
}

/** The signed text is the timestamp, a dot and the body; each of its dots could be taken for that one. */
function splitElsewhere(signed: Signed, dice: Dice): Changed {
  const whole = Buffer.concat([Buffer.from(`${signed.timestamp}.`), signed.body]);
  const dots = [...whole.entries()].filter(([index, byte]) => byte === 0x2e && index !== signed.timestamp.length);
  if (dots.length === 0) return { headers: headersOf({ ...signed, timestamp: `${signed.timestamp}.` }) };
  const [dot] = dice.pick(dots);
  const headers = headersOf({ ...signed, timestamp: whole.subarray(0, dot).toString() });
  const lenient = dice.isOneIn(2) ? { timestampFormat: () => NOW } : {};
  return { headers, body: whole.subarray(dot + 1), ...lenient };
}

/** Signed rightly, too long ago or too far ahead. */
function outOfTime({ body }: Signed, dice: Dice): Changed {
  const beyond = TOLERANCE_MS + 1 + dice.below(dice.pick([2, 1_000, 86_400_000]));
  const at = dice.isOneIn(2) ? NOW - beyond : NOW + beyond;
  return { headers: headersOf(signedAt(body, at)), due: "refused" };
}

/** The first 16 bytes are right. */
function beginningOnly(signed: Signed, dice: Dice): Changed {
  const bytes = Buffer.from(signed.bytes);
  const at = 16 + dice.below(16);
  bytes[at] = (bytes[at] ?? 0) ^ (1 + dice.below(255));
  return withHeader(signed, SIGNATURE_HEADER, bytes.toString(dice.pick(["hex", "base64", "base64url"])));
}

/** The last character of base64 carries 4 bits of 6: its other three spellings decode to the same bytes. */
function malleable(signed: Signed, dice: Dice): Changed {
  const [encoding, alphabet] = dice.pick([["base64", BASE64] as const, ["base64url", BASE64URL] as const]);
  const text = signed.bytes.toString(encoding).replace("=", "");
  const last = alphabet.indexOf(text[42] ?? "");
  const other = alphabet[last ^ (1 + dice.below(3))] ?? "";
  const padding = encoding === "base64" ? "=" : "";
  return { ...withHeader(signed, SIGNATURE_HEADER, `${text.slice(0, 42)}${other}${padding}`), due: "refused" };
}

function list(signed: Signed, dice: Dice, pool: readonly Signed[]): Record<string, string | readonly string[]> {
  const others = Array.from({ length: dice.below(7) }, () =>
    dice.isOneIn(4) ? dice.bytes(32).toString("hex") : dice.pick(pool).signature,
  );
  const entries = dice.isOneIn(3) ? others : [...others, signed.signature];
  if (entries.length > 0 && dice.isOneIn(3)) return { [SIGNATURE_HEADER]: entries };
  return { [SIGNATURE_HEADER]: entries.join(dice.pick([",", ", ", " ", ",,", ";", "  ", "\n"])) };
}
