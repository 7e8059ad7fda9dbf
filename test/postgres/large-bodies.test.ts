import { describe, expect, inject, it } from "vitest";
import { growthAt } from "../stores/large-bodies.ts";
import { newSchema } from "./place.ts";

describe("40 bodies of 10 MiB in Postgres", () => {
  it("take less than 150 MiB of a process that lists, views and handles them", { timeout: 240_000 }, async () => {
    const { handled, lists, view, worker } = await growthAt(inject("postgresUrl"), newSchema());
    expect(handled).toBe(40);
    expect(lists).toBeLessThan(20);
    expect(view).toBeLessThan(150);
    expect(worker).toBeLessThan(150);
  });
});
