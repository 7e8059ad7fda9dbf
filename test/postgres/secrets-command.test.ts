/** `oncehook secrets` on a schema of a real server. */
import { expect, inject, it } from "vitest";
import { postgresSecrets } from "../../src/stores/postgres.ts";
import { expectALife, sceneOf } from "../cli/secrets-scene.ts";
import { newSchema } from "./place.ts";

it("adopts, rotates and tells how it stands in Postgres, and prints no secret", async () => {
  const url = inject("postgresUrl");
  const schema = newSchema();
  await expectALife(sceneOf(url, (keyFile) => postgresSecrets(url, { schema, keyFile }), ["--schema", schema]));
});

it("makes no schema but to adopt", async () => {
  const url = inject("postgresUrl");
  const schema = newSchema();
  const { run } = sceneOf(url, (keyFile) => postgresSecrets(url, { schema, keyFile }), ["--schema", schema]);
  const { code, errors } = await run("status");
  expect([code, errors]).toEqual([expect.any(Number), expect.stringMatching(/^error: /)]);
  expect(code).toBeGreaterThan(0);
});
