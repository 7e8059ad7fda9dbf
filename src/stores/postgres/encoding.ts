/** Encodes values for the server and decodes its own: texts as bytes, bytea, and many rows as arrays. */
import { Buffer } from "node:buffer";
import { idValue, tenantOf, tenantText } from "../database.ts";

/** Never the first byte of UTF-8. */
const NOT_UTF8 = 0xff;

/** A text of the service as bytes, because Postgres's `text` cannot contain NUL, and UTF-8 no lone surrogate. */
export function textBytes(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text, "utf8");
  return Buffer.concat([Buffer.of(NOT_UTF8), Buffer.from(text, "utf16le")]);
}

export function bytesText(bytes: Buffer): string {
  return bytes[0] === NOT_UTF8 ? bytes.toString("utf16le", 1) : bytes.toString("utf8");
}

/** Never the first byte of UTF-8 either, nor of a text in UTF-16. */
const DIGEST = 0xfe;

/** The id of an event. A digest is half as long as bytes. */
export function idBytes(id: string): Buffer {
  const value = idValue(id);
  return typeof value === "string" ? textBytes(value) : Buffer.concat([Buffer.of(DIGEST), value]);
}

export function bytesId(bytes: Buffer): string {
  return bytes[0] === DIGEST ? bytes.toString("hex", 1) : bytesText(bytes);
}

export const tenantBytes = (tenant: string | null): Buffer => textBytes(tenantText(tenant));
export const bytesTenant = (bytes: Buffer): string | null => tenantOf(bytesText(bytes));

/** A backslash, or a byte as three octal digits. */
const ESCAPED = /\\(\\|[0-3][0-7]{2})/g;

/** Parses the server's text of bytes: hexadecimal, or escaped if a role, a database or an effect has set `bytea_output` so. */
export function parseBytea(text: string): Buffer {
  // An escaped text never starts so, because a backslash is doubled.
  if (text.startsWith("\\x")) return Buffer.from(text.slice(2), "hex");
  const characters = text.replace(ESCAPED, (_, escaped: string) =>
    escaped === "\\" ? escaped : String.fromCharCode(Number.parseInt(escaped, 8)),
  );
  return Buffer.from(characters, "latin1");
}

// Arrays in the protocol's binary form. As text, each value would be quoted, escaped and parsed, and each byte of a body would be two
// digits, which is most of a batch's cost on both sides.

/** The column types that are written in batches. */
export type ElementType = NumberType | BytesType;

type NumberType = "bigint" | "int" | "smallint" | "boolean";
type BytesType = "bytea" | "text";

/** The ids of the types in the system catalogue, the same on every server. */
const OID: Readonly<Record<ElementType, number>> = {
  boolean: 16,
  bytea: 17,
  bigint: 20,
  smallint: 21,
  int: 23,
  text: 25,
};

interface NumberForm {
  readonly bytes: number;
  /** The highest number, and the distance of the lowest number from 0. */
  readonly highest: number;
  readonly below: number;
  write(view: DataView, at: number, value: number): void;
}

/** True and false are 1 and 0. */
const FORMS: Readonly<Record<NumberType, NumberForm>> = {
  boolean: { bytes: 1, highest: 1, below: 0, write: (view, at, value) => view.setUint8(at, value) },
  smallint: { bytes: 2, highest: 2 ** 15 - 1, below: 2 ** 15, write: (view, at, value) => view.setInt16(at, value) },
  int: { bytes: 4, highest: 2 ** 31 - 1, below: 2 ** 31, write: (view, at, value) => view.setInt32(at, value) },
  // The highest JavaScript number below 2 ** 63.
  bigint: { bytes: 8, highest: 2 ** 63 - 1024, below: 2 ** 63, write: writeLong },
};

/** The error that the server would return for a number, with its SQLSTATE. */
export class OutOfRange extends RangeError {
  readonly code = "22003";

  constructor(type: ElementType) {
    super(`A number does not fit a column of type ${type}.`);
  }
}

/** The header: dimensions, whether there are nulls, the type; then the length and the lower bound of the only dimension. */
const EMPTY_HEADER = 12;
const HEADER = 20;
const LENGTH = 4;
const NULL_LENGTH = -1;
const WORD = 0x1_0000_0000;

/**
 * Encodes the values of a column for a parameter that is cast to `type[]`. Null and undefined become null.
 *
 * @throws OutOfRange for a number outside the type's range
 */
export function arrayOf(type: ElementType, values: readonly unknown[]): Buffer {
  if (values.length === 0) return EMPTY[type];
  return isNumeric(type) ? arrayOfNumbers(type, values) : arrayOfBytes(type, values);
}

function isElementType(type: string): type is ElementType {
  return Object.hasOwn(OID, type);
}

function isNumeric(type: ElementType): type is NumberType {
  return Object.hasOwn(FORMS, type);
}

const EMPTY = Object.fromEntries(
  Object.entries(OID).map(([type, oid]) => {
    const header = Buffer.alloc(EMPTY_HEADER);
    header.writeInt32BE(oid, 8);
    return [type, header];
  }),
) as Readonly<Record<ElementType, Buffer>>;

function arrayOfNumbers(type: NumberType, values: readonly unknown[]): Buffer {
  const { bytes, highest, below, write } = FORMS[type];
  const [target, view] = allocate(HEADER + values.length * (LENGTH + bytes));
  let nulls = 0;
  let at = HEADER;
  for (const value of values) {
    const isNull = value === null || value === undefined;
    view.setInt32(at, isNull ? NULL_LENGTH : bytes);
    at += LENGTH;
    if (isNull) {
      nulls += 1;
      continue;
    }
    const number = Number(value);
    if (!Number.isInteger(number) || number > highest || number < -below) throw new OutOfRange(type);
    write(view, at, number);
    at += bytes;
  }
  writeHeader(view, type, { length: values.length, nulls });
  return target.subarray(0, at);
}

/** Writes two words, because a BigInt for each value would be slow. */
function writeLong(view: DataView, at: number, value: number): void {
  view.setInt32(at, Math.floor(value / WORD));
  view.setUint32(at + LENGTH, value);
}

function arrayOfBytes(type: BytesType, values: readonly unknown[]): Buffer {
  const all = values.map(elementBytes);
  const [target, view] = allocate(
    all.reduce((sum, bytes) => sum + (bytes?.byteLength ?? 0), HEADER + all.length * LENGTH),
  );
  let nulls = 0;
  let at = HEADER;
  for (const bytes of all) {
    view.setInt32(at, bytes?.byteLength ?? NULL_LENGTH);
    at += LENGTH;
    if (bytes === null) {
      nulls += 1;
      continue;
    }
    target.set(bytes, at);
    at += bytes.byteLength;
  }
  writeHeader(view, type, { length: all.length, nulls });
  return target;
}

function elementBytes(value: unknown): Uint8Array | null {
  if (value === null || value === undefined) return null;
  return value instanceof Uint8Array ? value : Buffer.from(String(value), "utf8");
}

function allocate(bytes: number): [Buffer, DataView] {
  const target = Buffer.allocUnsafe(bytes);
  return [target, new DataView(target.buffer, target.byteOffset, target.byteLength)];
}

function writeHeader(view: DataView, type: ElementType, of: { readonly length: number; readonly nulls: number }): void {
  view.setInt32(0, 1);
  view.setInt32(4, of.nulls > 0 ? 1 : 0);
  view.setInt32(8, OID[type]);
  view.setInt32(12, of.length);
  view.setInt32(16, 1);
}

// Many rows in one statement: one array for each column.

/** Names and types of a table's columns, in the order of the values. */
export type Columns = readonly (readonly [name: string, type: ElementType])[];

export type Values = readonly unknown[];

/** Columns written as `name type`, separated by commas. */
export function columns(text: string): Columns {
  return text.split(",").map((column) => {
    const [name = "", type = ""] = column.trim().split(" ");
    if (!isElementType(type))
      throw new RangeError(`Column ${name} has a type that is not written in batches: ${type}.`);
    return [name, type];
  });
}

/** `unnest($1::bigint[], …)`, starting with the parameter after `offset`. */
export function unnested(columns: Columns, offset: number): string {
  return `unnest(${columns.map(([, type], index) => `$${offset + index + 1}::${type}[]`).join(", ")})`;
}

/** `id, name`, or `t.id, t.name` of a table. */
export function columnNames(columns: Columns, table?: string): string {
  return columns.map(([name]) => (table === undefined ? name : `${table}.${name}`)).join(", ");
}

/**
 * Turns rows into one array per column. A column with only nulls becomes an empty array: `unnest` fills up shorter arrays with nulls, and
 * the first column is never null, so it has the full length.
 */
export function transposed(columns: Columns, rows: readonly Values[]): Buffer[] {
  return columns.map(([, type], index) => {
    const values = rows.map((row) => row[index]);
    return arrayOf(type, values.every(isNothing) ? [] : values);
  });
}

const isNothing = (value: unknown): boolean => value === null || value === undefined;

/** `name = new.name, …` for all columns except the first, which finds the row. */
export function nullableBytes(text: string | null): Buffer | null {
  return text === null ? null : textBytes(text);
}

export function assigned(columns: Columns): string {
  return columns
    .slice(1)
    .map(([name]) => `${name} = new.${name}`)
    .join(", ");
}
