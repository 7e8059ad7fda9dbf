/** One server for all tests of Postgres: started before them, stopped after. */
import type { TestProject } from "vitest/node";
import { startPostgres } from "../stores/postgres/server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Of a superuser of the tests' own server. */
    readonly postgresUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres();
  project.provide("postgresUrl", server.url);
  return () => server.stop();
}
