/** `GET api/groups`, which goes through all dead letters: once for all who ask. */
import { expect, it } from "vitest";
import type { ErrorGroups } from "../../../../src/tools/inspector/index.ts";
import type { ApiCall } from "../../../../src/tools/inspector/route.ts";
import { groupsRoute } from "../../../../src/tools/inspector/routes/overview.ts";
import { until } from "../../../receiver/bench.ts";
import { BulkScene } from "../../../receiver/bulk-scene.ts";

/** The route of one inbox, and the store's `find`. */
async function openRoute() {
  const scene = new BulkScene();
  const { inbox } = scene;
  const { store } = scene.bench;
  await scene.dead(2);
  const counts = async () => {
    const { body } = await groupsRoute.run({ inbox, query: new URLSearchParams() } as ApiCall);
    return (JSON.parse(`${body}`) as ErrorGroups).map(({ count }) => count);
  };
  return { scene, store, find: store.find.bind(store), counts };
}

it("goes through the dead letters once for all who ask meanwhile, and tells them what has changed since", async () => {
  const { scene, store, find, counts } = await openRoute();
  const goOn: (() => void)[] = [];
  store.find = async (query) => {
    const page = await find(query);
    await new Promise<void>((resolve) => goOn.push(resolve));
    return page;
  };
  const first = counts();
  await until(() => goOn.length === 1);
  await scene.inbox.discard(3);
  const others = Promise.all([counts(), counts(), counts()]);
  goOn[0]?.();
  expect(await first).toEqual([2]);
  await until(() => goOn.length === 2);
  goOn[1]?.();
  expect(await others).toEqual([[1], [1], [1]]);
  const later = counts();
  await until(() => goOn.length === 3);
  goOn[2]?.();
  expect(await later).toEqual([1]);
});

it("counts again after it could not", async () => {
  const { store, find, counts } = await openRoute();
  store.find = () => Promise.reject(new Error("The disk is full."));
  const failures = await Promise.allSettled([counts(), counts(), counts()]);
  expect(failures.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  store.find = find;
  expect(await counts()).toEqual([2]);
});
