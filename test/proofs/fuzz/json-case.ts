/** Bodies that a holder of a secret could sign: JSON built from the events' own structure, with one thing wrong or odd in each. */
import { serviceFixtures } from "../../../src/tools/testing/fixtures.ts";
import type { Dice } from "./dice.ts";

export interface JsonCase {
  readonly kind: string;
  readonly body: Buffer;
  /** `by shape`: JSON as any parser reads it, so an event exactly when it has an event's shape. */
  readonly due: "event" | "failure" | "by shape";
}

/** An object's fields in their order, each as written; a key is written too, so that it can stand there twice. */
type Written = (readonly [key: string, value: string])[];

interface Parts {
  readonly event: Written;
  readonly data: Written;
}

const MAKERS = Object.values(serviceFixtures);
const WRONG = [
  ..."null true false 0 -0 1 -1 1.5 1e400 -1e400 1e308 10000 10001 1e4 1E+2".split(" "),
  ...["9007199254740991", "9007199254740993", "1".repeat(400), '""', '"x"', '"0"', '"\\ud800"', '"\\udc00\\ud800"'],
  ...['"\\u0000"', "[]", "{}", "[[]]", "[null]", '{"a":1}', '{"code":"a","message":"b","details":{}}', '{"code":1}'],
  ...['"message.sent"', '"message.inbound"', '"inbound"', '"outbound"', '"msg_000001"', `"${"i".repeat(513)}"`],
];
/** Texts that run into each other when they are put together carelessly. */
const ID_PIECES = [" ", ...'a b 1 0 , \\" \\\\ : \\n \\u0000 é e\u0301 \\u00e9 / |'.split(" ")];

export const JSON_KINDS: Readonly<Record<string, (parts: Parts, dice: Dice) => Omit<JsonCase, "kind">>> = {
  "json, as it should be": (parts) => ({ body: textOf(parts), due: "event" }),
  "json, ids that look alike": (parts, dice) => {
    const id = (least: number) => `"${dice.text(ID_PIECES, least + dice.below(4))}"`;
    const [client, message] = [id(1), id(1)];
    const event = parts.event.map(([key, value]) => [key, idOr(key, value, { client, message })] as const);
    const data = parts.data.map(([key, value]) => [key, idOr(key, value, { client, message })] as const);
    return { body: textOf({ event, data }), due: "by shape" };
  },
  "json, a wrong type": (parts, dice) => ({
    body: textOf(edit(parts, dice, () => [dice.pick(WRONG)])),
    due: "by shape",
  }),
  "json, a field missing": (parts, dice) => ({ body: textOf(edit(parts, dice, () => [])), due: "by shape" }),
  "json, a key twice": (parts, dice) => ({
    body: textOf(edit(parts, dice, (value) => [value, dice.isOneIn(2) ? value : dice.pick(WRONG)], dice.isOneIn(2))),
    due: "failure",
  }),
  "json, __proto__": (parts, dice) => {
    const key = dice.pick(["__proto__", "\\u005f_proto__", "__pr\\u006fto__"]);
    return { body: textOf(withField(parts, dice, [key, dice.pick(['{"admin":true}', "null", "1"])])), due: "failure" };
  },
  "json, keys of objects": (parts, dice) => {
    const key = dice.pick(["", ..."constructor toString hasOwnProperty toJSON then length __proto valueOf".split(" ")]);
    return { body: textOf(withField(parts, dice, [key, dice.pick(WRONG)])), due: "by shape" };
  },
  "json, deep": deep,
  "json, bytes that are no UTF-8": (parts, dice) => ({ body: notUtf8(textOf(parts), dice), due: "failure" }),
  "json, a byte order mark": (parts, dice) => {
    const text = textOf(parts);
    const marks = [Buffer.from("\ufeff"), Buffer.from("\ufeff\ufeff")];
    return { body: dice.isOneIn(3) ? utf16(text) : Buffer.concat([dice.pick(marks), text]), due: "failure" };
  },
  "json, not quite": (parts, dice) => {
    const text = textOf(parts).toString();
    const around = [`${text}${text}`, `${text}x`, `[${text}`, `//\n${text}`, `\u00a0${text}`];
    const spoilt = [...around, text.slice(0, -1), text.replace(/"/g, "'"), text.replace("}", ",}"), "", " "];
    return { body: Buffer.from(dice.pick(spoilt)), due: "failure" };
  },
  "json, no object": (_, dice) => ({
    body: Buffer.from(dice.pick(['"x"', "1", "null", "[]", "[{}]", "true", "1e400", `"${"y".repeat(50_000)}"`])),
    due: "failure",
  }),
  "json, an unknown type": (_, dice) => {
    const fields = ["direction", "apiClientId", "messageId", "sequence", "occurredAt"].filter(() => !dice.isOneIn(3));
    const event: Written = fields.map((key) => [key, key === "direction" ? direction(dice) : dice.pick(WRONG)]);
    const type = dice.pick(["message.read", "MESSAGE.SENT", "message.sent ", "__proto__", "constructor", "t"]);
    const written: Written = [["eventType", `"${type}"`], ...event];
    return { body: textOf({ event: written, data: [["messageId", dice.pick(WRONG)]] }), due: "by shape" };
  },
};

const KINDS = Object.keys(JSON_KINDS);

export function jsonCase(dice: Dice): JsonCase {
  const kind = dice.pick(KINDS);
  const make = JSON_KINDS[kind];
  if (make === undefined) throw new Error(`${kind} is no kind.`);
  return { kind, ...make(partsOf(dice), dice) };
}

function partsOf(dice: Dice): Parts {
  const { data, ...event }: Record<string, unknown> = { ...dice.pick(MAKERS)() };
  const written = (fields: object): Written =>
    Object.entries(fields).map(([key, value]) => [key, JSON.stringify(value)]);
  return { event: written(event), data: written(data as object) };
}

function textOf({ event, data }: Parts): Buffer {
  const object = (fields: Written) => `{${fields.map(([key, value]) => `"${key}":${value}`).join(",")}}`;
  return Buffer.from(object([...event, ["data", object(data)]]));
}

/** Writes one field, of the event or of its data, with other values: with none it is missing, with two it is there twice. */
function edit(parts: Parts, dice: Dice, values: (value: string) => readonly string[], isEscaped = false): Parts {
  const place = dice.isOneIn(2) && parts.data.length > 0 ? "data" : "event";
  const at = dice.below(parts[place].length);
  const fields = parts[place].flatMap(([key, value], index): Written => {
    if (index !== at) return [[key, value]];
    return values(value).map((each, turn) => [isEscaped && turn > 0 ? escaped(key) : key, each]);
  });
  return { ...parts, [place]: fields };
}

function withField(parts: Parts, dice: Dice, field: readonly [string, string]): Parts {
  const place = dice.isOneIn(2) ? "data" : "event";
  const at = dice.below(parts[place].length + 1);
  return { ...parts, [place]: parts[place].toSpliced(at, 0, field) };
}

/** The same key for whoever reads JSON. */
function escaped(key: string): string {
  return `\\u${key.charCodeAt(0).toString(16).padStart(4, "0")}${key.slice(1)}`;
}

function idOr(key: string, value: string, ids: { readonly client: string; readonly message: string }): string {
  if (key === "apiClientId") return ids.client;
  return key === "messageId" ? ids.message : value;
}

function direction(dice: Dice): string {
  return dice.pick(['"outbound"', '"outbound"', '"inbound"', "null"]);
}

/** Objects and arrays, to a depth that is fine, just too much, or meant to exhaust a stack. */
function deep(parts: Parts, dice: Dice): Omit<JsonCase, "kind"> {
  // The event itself is one level.
  const levels = dice.isOneIn(20) ? 1_000 + dice.below(99_001) : 60 + dice.below(8);
  const [open, close] = dice.pick([["[", "]"] as const, ['{"a":', "}"] as const]);
  const value = `${open.repeat(levels)}1${dice.isOneIn(4) ? "" : close.repeat(levels)}`;
  const body = textOf({ ...parts, event: [...parts.event, ["extra", value]] });
  const isClosed = value.endsWith(close);
  return { body, due: isClosed && levels < 64 ? "by shape" : "failure" };
}

function notUtf8(text: Buffer, dice: Dice): Buffer {
  const at = dice.below(text.length + 1);
  const wrong = dice.pick([[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0x80], [0xe2, 0x82]]);
  return Buffer.concat([text.subarray(0, at), Buffer.from(wrong), text.subarray(at)]);
}

function utf16(text: Buffer): Buffer {
  return Buffer.from(`\ufeff${text.toString()}`, "utf16le");
}
