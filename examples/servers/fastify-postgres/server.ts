/** `npm run example:fastify-postgres`: webhooks in several processes of a Fastify application that share an inbox in Postgres. */
import cluster from "node:cluster";
import { endWithOneLine } from "../../shared/environment.ts";
import { readClusterEnvironment } from "./environment.ts";
import { createHistoryTable } from "./history.ts";
import { lead } from "./parent.ts";
import { work } from "./worker.ts";

async function main(): Promise<void> {
  const environment = readClusterEnvironment(process.env);
  if (cluster.isWorker) return work(environment);
  await createHistoryTable(environment.databaseUrl);
  lead(environment.workers);
}

main().catch(endWithOneLine);
