/** `POST /api/core/numbers/search`: what is found, what is refused, and that it changes nothing. */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { MAGIC_ZIP_UPSTREAM } from "../../../../src/messaging/emulator/routes/numbers.ts";
import { checkedCall, verdict } from "../checked-call.ts";
import { start } from "../support.ts";

type Found = { readonly e164: string } & Readonly<
  Record<"nationalDisplay" | "city" | "state" | "rateCenter", string | null>
>;
type Group = Readonly<{ rateCenter: string; count: number; numbers: readonly Found[] }>;

const PATH = "/api/core/numbers/search";
const search = (emulator: Emulator, body: unknown) => checkedCall(emulator, "POST", PATH, { body });

async function found(emulator: Emulator, body: object): Promise<Found[]> {
  const { groups } = (await search(emulator, body)).body as { groups: Group[] };
  return groups.flatMap(({ numbers }) => numbers);
}

describe("POST /api/core/numbers/search", () => {
  it("finds the whole inventory with {}, in groups by rate center (SEA-6, SEA-7, SEA-11, SEA-13)", async () => {
    const emulator = await start();
    const { body } = await search(emulator, {});
    const groups: Group[] = body.groups;
    const numbers = groups.flatMap((group) => group.numbers);
    expect(numbers).toHaveLength(48);
    expect(body).toEqual({ groups, providerResultCount: 48, requestedQuantity: 50 });
    expect(new Set(groups.map(({ rateCenter }) => rateCenter)).size).toBe(groups.length);
    for (const { rateCenter, count, numbers } of groups) {
      expect(count).toBe(numbers.length);
      expect(numbers.filter((number) => number.rateCenter !== rateCenter)).toEqual([]);
    }
    expect(new Set(numbers.map(({ state }) => state))).toEqual(new Set(["WA", "CA", "OR", "IL", "MA"]));
  });

  it("finds numbers that nobody has, each once, some without a city (SEA-6)", async () => {
    const emulator = await start();
    const numbers = await found(emulator, {});
    const e164s = numbers.map(({ e164 }) => e164);
    expect(new Set(e164s).size).toBe(e164s.length);
    for (const { e164, nationalDisplay } of numbers) {
      const [, npa, line] = /^\+1(\d{3})555(01\d\d)$/.exec(e164) ?? [];
      expect(nationalDisplay).toBe(`(${npa}) 555-${line}`);
    }
    const assigned = emulator.control.numbers().map(({ e164 }) => e164);
    expect(e164s.filter((e164) => assigned.includes(e164))).toEqual([]);
    expect(numbers.some(({ city }) => city === null)).toBe(true);
  });

  it.each<[object, number, (number: Found) => boolean]>([
    [{ npa: "206" }, 8, ({ e164 }) => e164.startsWith("+1206")],
    [{ npa: "206", nxx: "555" }, 8, ({ e164 }) => e164.startsWith("+1206555")],
    [{ npa: "206", nxx: "556" }, 0, () => true],
    [{ state: "OR" }, 12, ({ state }) => state === "OR"],
    [{ state: "or" }, 12, ({ state }) => state === "OR"],
    [{ city: "sPRINGfield", state: "IL" }, 4, ({ city, state }) => city === "Springfield" && state === "IL"],
    [{ city: "Fresno", state: "CA" }, 4, ({ e164 }) => e164.startsWith("+1559")],
    [{ city: "Springfield", state: "MA" }, 4, ({ city, state }) => city === "Springfield" && state === "MA"],
    [{ city: "Springfield", state: "WA" }, 0, () => true],
    [{ zipCode: "98104" }, 4, ({ rateCenter }) => rateCenter === "SEATTLE"],
    [{ zipCode: "98104", npa: "253" }, 0, () => true],
    [{ zipCode: "no zip at all" }, 0, () => true],
    [{ npa: "" }, 0, () => true],
  ])("filters by %j, whatever its form (SEA-12)", async (body, count, fits) => {
    const emulator = await start();
    const { groups, providerResultCount } = (await search(emulator, body)).body as {
      groups: Group[];
      providerResultCount: number;
    };
    const numbers = groups.flatMap((group) => group.numbers);
    expect([numbers.length, providerResultCount]).toEqual([count, count]);
    expect(numbers.filter((number) => !fits(number))).toEqual([]);
    if (count === 0) expect(groups).toEqual([]);
  });

  it("finds the same in the same order each time, whatever the seed", async () => {
    const [first, again, other] = [await start(), await start(), await start({ seed: "other" })];
    const { text } = await search(first, {});
    expect([(await search(again, {})).text, (await search(other, {})).text]).toEqual([text, text]);
  });

  it.each([
    ["nxx without npa (SEA-2)", { nxx: "555" }, "nxx"],
    ["city without state (SEA-3)", { city: "Seattle" }, "city"],
    ["city without state, beside a zip code (SEA-3)", { city: "Seattle", zipCode: "98101" }, "city"],
    ["rateCenter without state (SEA-4)", { rateCenter: "SEATTLE" }, "rateCenter"],
    ["rateCenter with state (SEA-5)", { rateCenter: "SEATTLE", state: "WA" }, "rateCenter"],
    ["an empty rateCenter (SEA-5)", { rateCenter: "", state: "WA" }, "rateCenter"],
    ["npa as a number (SEA-1)", { npa: 206 }, "npa"],
    ["nxx as a number (SEA-1)", { npa: "206", nxx: 555 }, "nxx"],
    ["city as an array (SEA-1)", { city: ["Seattle"], state: "WA" }, "city"],
    ["state null (SEA-1)", { state: null }, "state"],
    ["zipCode as a number (SEA-1)", { zipCode: 98101 }, "zipCode"],
    ["rateCenter as a number (SEA-1)", { rateCenter: 1 }, "rateCenter"],
  ])("refuses %s with 400, naming the field", async (_, body, field) => {
    const refused = await search(await start(), body);
    expect(verdict(refused)).toBe("400 INVALID_REQUEST");
    const { issues } = refused.body.error.details;
    expect(new Set(issues.map(({ path }: { path: string }) => path))).toEqual(new Set([field]));
  });

  it("says that requestedQuantity is no field of the request, and keeps its own (SEA-7)", async () => {
    const emulator = await start();
    const { body } = await search(emulator, { npa: "206", requestedQuantity: 5 });
    expect(body.requestedQuantity).toBe(50);
    expect(emulator.control.requests().at(-1)?.warnings).toEqual(['unknown field "requestedQuantity" was ignored']);
  });

  it("fails upstream for the magic zip code, after what is refused, unless magic is off (SEA-8)", async () => {
    const emulator = await start();
    const failed = await search(emulator, { zipCode: MAGIC_ZIP_UPSTREAM, state: "NY" });
    expect(verdict(failed)).toBe("502 UPSTREAM_ERROR");
    expect(failed.body.error.details).toEqual({ providerStatus: 503 });
    const refused = await search(emulator, { zipCode: MAGIC_ZIP_UPSTREAM, nxx: "555" });
    expect(verdict(refused)).toBe("400 INVALID_REQUEST");
    expect(await found(await start({ magic: false }), { zipCode: MAGIC_ZIP_UPSTREAM })).toEqual([]);
  });

  it("assigns nothing (SEA-10)", async () => {
    const emulator = await start();
    const before = emulator.control.numbers();
    await search(emulator, { npa: "206" });
    expect(emulator.control.numbers()).toEqual(before);
  });
});
