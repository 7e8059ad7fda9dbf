/** The store contract on notes: small values that all processes of an inbox share. */
import type { ChangeNotes, InboxStore } from "../../src/inbox/store.ts";
import { type ContractCase, DAY, it, needing, POLICY } from "./store-bench.ts";

export const noteCases: readonly ContractCase[] = [
  it("passes the notes that exist, and keeps what is returned", async (bench) => {
    const seen: unknown[] = [];
    await bench.store.changeNotes(["a", "b"], (notes, now) => {
      seen.push([...notes], now);
      return new Map([["b", { value: "1", keepMs: DAY }]]);
    });
    await bench.store.changeNotes(["a", "b"], (notes) => {
      seen.push([...notes]);
      return new Map([["b", { value: "2", keepMs: DAY }]]);
    });
    await bench.store.changeNotes(["b"], (notes) => {
      seen.push([...notes]);
      return new Map();
    });
    bench.expect(seen).toEqual([[], bench.clock.now(), [["b", "1"]], [["b", "2"]]]);
  }),
  it("loses no change of many that are made at once", async (bench) => {
    const orders = [
      ["n", "m"],
      ["m", "n"],
    ];
    await Promise.all(Array.from({ length: 20 }, (_, index) => bench.store.changeNotes(orders[index % 2] ?? [], add)));
    bench.expect([await read(bench.store, "m"), await read(bench.store, "n")]).toEqual(["20", "20"]);
  }),
  it("writes nothing, and rejects, if the change throws", async (bench) => {
    const failing = bench.store.changeNotes(["n"], () => {
      throw new Error("no");
    });
    const reason = await failing.then(
      () => "none",
      () => "rejected",
    );
    bench.expect([reason, await read(bench.store, "n")]).toEqual(["rejected", undefined]);
  }),
  it("prunes a note once its time has passed, and no other", async (bench) => {
    const written = new Map([
      ["short", { value: "1", keepMs: 1_000 }],
      ["long", { value: "1", keepMs: DAY }],
    ]);
    await bench.store.changeNotes(["short", "long"], () => written);
    await bench.clock.advance(1_001);
    await bench.store.prune(POLICY);
    bench.expect([await read(bench.store, "short"), await read(bench.store, "long")]).toEqual([undefined, "1"]);
  }),
  ...needing("durable", [
    it("keeps notes when it is opened again", async (bench) => {
      await bench.store.changeNotes(["n"], () => new Map([["n", { value: "kept", keepMs: DAY }]]));
      await bench.restart();
      bench.expect(await read(bench.store, "n")).toBe("kept");
    }),
  ]),
  ...needing("shared", [
    it("loses no change of two stores on one place", async (bench) => {
      const other = await bench.another();
      const adds = Array.from({ length: 10 }, () =>
        [bench.store, other].map((store) => store.changeNotes(["n", "m"], add)),
      );
      await Promise.all(adds.flat());
      bench.expect([await read(other, "n"), await read(bench.store, "m")]).toEqual(["20", "20"]);
    }),
  ]),
];

/** Adds 1 to both notes. */
const add: ChangeNotes = (notes) =>
  new Map(["n", "m"].map((name) => [name, { value: String(Number(notes.get(name) ?? 0) + 1), keepMs: DAY }]));

async function read(store: Pick<InboxStore, "changeNotes">, name: string): Promise<string | undefined> {
  let value: string | undefined;
  await store.changeNotes([name], (notes) => {
    value = notes.get(name);
    return new Map();
  });
  return value;
}
