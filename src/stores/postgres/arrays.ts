/**
 * Arrays in the binary form of the protocol. As texts each value would be quoted, escaped and parsed again, and each byte of a body
 * would be two digits, which is most of what a batch costs on both sides.
 */

/** The types of columns that are written in batches. */
export type ElementType = "bigint" | "int" | "smallint" | "boolean" | "bytea" | "text";

/** Numbers of the types in the system catalogue, the same on every server. */
const OID: Readonly<Record<ElementType, number>> = {
  boolean: 16,
  bytea: 17,
  bigint: 20,
  smallint: 21,
  int: 23,
  text: 25,
};
/** Bytes of a value; null for those whose length is their own. */
const SIZE: Readonly<Record<ElementType, number | null>> = {
  ...{ boolean: 1, smallint: 2, int: 4, bigint: 8 },
  ...{ bytea: null, text: null },
};

/** What the server would have said of a number. */
export class OutOfRange extends RangeError {
  readonly code = "22003";

  constructor(type: ElementType, options?: ErrorOptions) {
    super(`A number does not fit a column of type ${type}.`, options);
  }
}

/** Dimensions, whether there are nulls, the type; then of the one dimension its length and where it begins. */
const EMPTY_HEADER = 12;
const HEADER = 20;
const LENGTH = 4;
const NULL_LENGTH = -1;
const WORD = 0x1_0000_0000;

/**
 * Values of a column, for a parameter that is cast to `type[]`. Null and undefined are null.
 *
 * @throws OutOfRange for a number that the type does not hold
 */
export function arrayOf(type: ElementType, values: readonly unknown[]): Buffer {
  if (values.length === 0) return EMPTY[type];
  const raw = type === "bytea" || type === "text" ? values.map((value) => bytesOf(value)) : null;
  const target = Buffer.allocUnsafe(HEADER + values.length * LENGTH + contentLength(SIZE[type], raw ?? values));
  writeHeader(target, type, values);
  let at = HEADER;
  for (let index = 0; index < values.length; index++) {
    const value = raw === null ? values[index] : raw[index];
    if (value === null || value === undefined) at = target.writeInt32BE(NULL_LENGTH, at);
    else if (raw === null) at = writeNumber(target, type, Number(value), at);
    else at = writeBytes(target, value as Uint8Array, at);
  }
  return target;
}

export function isElementType(type: string): type is ElementType {
  return Object.hasOwn(OID, type);
}

const EMPTY = Object.fromEntries(
  Object.entries(OID).map(([type, oid]) => {
    const header = Buffer.alloc(EMPTY_HEADER);
    header.writeInt32BE(oid, 8);
    return [type, header];
  }),
) as Readonly<Record<ElementType, Buffer>>;

function writeHeader(target: Buffer, type: ElementType, values: readonly unknown[]): void {
  const hasNull = values.some((value) => value === null || value === undefined);
  let at = target.writeInt32BE(1, 0);
  at = target.writeInt32BE(hasNull ? 1 : 0, at);
  at = target.writeInt32BE(OID[type], at);
  at = target.writeInt32BE(values.length, at);
  target.writeInt32BE(1, at);
}

function contentLength(size: number | null, values: readonly unknown[]): number {
  let length = 0;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    length += size ?? (value as Uint8Array).byteLength;
  }
  return length;
}

function bytesOf(value: unknown): Uint8Array | null {
  if (value === null || value === undefined) return null;
  return value instanceof Uint8Array ? value : Buffer.from(String(value), "utf8");
}

function writeBytes(target: Buffer, bytes: Uint8Array, at: number): number {
  target.writeInt32BE(bytes.byteLength, at);
  target.set(bytes, at + LENGTH);
  return at + LENGTH + bytes.byteLength;
}

/** True and false are 1 and 0. @throws OutOfRange */
function writeNumber(target: Buffer, type: ElementType, value: number, at: number): number {
  const from = target.writeInt32BE(SIZE[type] ?? 0, at);
  if (!Number.isInteger(value)) throw new OutOfRange(type);
  try {
    switch (type) {
      case "boolean":
        return target.writeUInt8(value, from);
      case "smallint":
        return target.writeInt16BE(value, from);
      case "int":
        return target.writeInt32BE(value, from);
      default:
        return writeLong(target, value, from);
    }
  } catch (cause) {
    throw new OutOfRange(type, { cause });
  }
}

/** As two words: a BigInt for each would be slow. */
function writeLong(target: Buffer, value: number, at: number): number {
  if (!Number.isSafeInteger(value)) return target.writeBigInt64BE(BigInt(value), at);
  target.writeInt32BE(Math.floor(value / WORD), at);
  return target.writeUInt32BE(value >>> 0, at + LENGTH);
}
