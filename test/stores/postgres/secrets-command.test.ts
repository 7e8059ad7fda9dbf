/** `oncehook secrets` on a schema of a real server. */
import { expect, inject, it } from "vitest";
import { postgresSecrets } from "../../../src/stores/postgres.ts";
import { expectALife, sceneOf } from "../../tools/cli/secrets-scene.ts";
import { newSchema } from "./place.ts";

function secretsScene() {
  const schema = newSchema();
  return sceneOf(inject("postgresUrl"), (keyFile) => postgresSecrets(inject("postgresUrl"), { schema, keyFile }), [
    "--schema",
    schema,
  ]);
}

it("adopts, rotates and tells how it stands in Postgres, and prints no secret", async () => {
  await expectALife(secretsScene());
});

it("makes no schema but to adopt", async () => {
  const { code, errors } = await secretsScene().run("status");
  expect([code, errors]).toEqual([expect.any(Number), expect.stringMatching(/^error: /)]);
  expect(code).toBeGreaterThan(0);
});
