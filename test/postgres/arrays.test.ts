/** Arrays as the server takes them: what it reads is what was written. */
import { describe, expect, it } from "vitest";
import { arrayOf, type ElementType, OutOfRange } from "../../src/stores/postgres/encoding.ts";
import { newPool } from "./place.ts";

/** How the server reads an array that was written here, each element as its text. */
async function readBack(type: ElementType, values: readonly unknown[]): Promise<(string | null)[]> {
  const text = type === "bytea" ? "encode(v, 'hex')" : "v::text";
  const sql = `select coalesce(array_agg(${text} order by n), '{}') as read from unnest($1::${type}[]) with ordinality as a (v, n)`;
  const { rows } = await newPool().query(sql, [arrayOf(type, values)]);
  return rows[0].read;
}

describe("arrayOf()", () => {
  it.each<[ElementType, readonly unknown[]]>([
    ["bigint", [0, 1, -1, 2 ** 32, -(2 ** 32) - 1, 2 ** 60, 2 ** 63 - 1024, -(2 ** 63)]],
    ["bigint", [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]],
    ["int", [0, 2 ** 31 - 1, -(2 ** 31)]],
    ["smallint", [0, 32_767, -32_768]],
    ["text", ["", "é", '{"a",NULL}', "\\", "\u{1f600}"]],
  ])("writes %s to the last value of its range", async (type, values) => {
    const exact = (value: unknown) => (typeof value === "number" ? BigInt(value) : value);
    expect(await readBack(type, values)).toEqual(values.map((value) => `${exact(value)}`));
  });

  it("writes nulls between numbers, and no minus before 0", async () => {
    expect(await readBack("bigint", [null, -0, null, 7])).toEqual([null, "0", null, "7"]);
    expect(await readBack("bytea", [Buffer.of(1), null, Buffer.of(2)])).toEqual(["01", null, "02"]);
  });

  it("writes booleans and bytes", async () => {
    expect(await readBack("boolean", [true, false])).toEqual(["true", "false"]);
    const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const part = Buffer.from([9, 8, 7, 6]).subarray(1, 3);
    const hex = [Buffer.from(all).toString("hex"), "0807", ""];
    expect(await readBack("bytea", [all, part, new Uint8Array()])).toEqual(hex);
  });

  it.each<ElementType>(["bigint", "int", "smallint", "boolean", "bytea", "text"])(
    "writes nulls and nothing as %s",
    async (type) => {
      expect(await readBack(type, [null, undefined])).toEqual([null, null]);
      expect(await readBack(type, [])).toEqual([]);
    },
  );

  it.each<[ElementType, number]>([
    ...[2 ** 63, -(2 ** 63) - 2048, 1.5, Number.NaN].map((value): [ElementType, number] => ["bigint", value]),
    ...[2 ** 31, -(2 ** 31) - 1, Number.POSITIVE_INFINITY].map((value): [ElementType, number] => ["int", value]),
    ...[32_768, -32_769].map((value): [ElementType, number] => ["smallint", value]),
    ...[2, -1].map((value): [ElementType, number] => ["boolean", value]),
  ])("refuses for %s what it does not hold, without showing it (%d)", (type, value) => {
    expect(() => arrayOf(type, [value])).toThrow(OutOfRange);
    const hidden = expect.not.objectContaining({ message: expect.stringContaining(`${value}`) });
    expect(() => arrayOf(type, [value])).toThrow(hidden);
  });
});
