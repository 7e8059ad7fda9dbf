/** pg-boss, which is compared with: one job an event, stored before the 2xx. */
import type { WebhookEvent } from "../src/index.ts";
import { peerPackages } from "./peer-packages.ts";

const QUEUE = "webhooks";

/** The few functions of it that are called here. */
interface PgBoss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  createQueue(name: string): Promise<void>;
  send(name: string, data: object): Promise<string | null>;
}

type PgBossClass = new (options: { connectionString: string; supervise: boolean; schedule: boolean }) => PgBoss;

/** Returns what queues an event and resolves when it is committed. Without its upkeep: that would only cost it time. */
export async function startPgBoss(connectionString: string): Promise<(event: WebhookEvent) => Promise<void>> {
  const Boss: PgBossClass = peerPackages()("pg-boss");
  const boss = new Boss({ connectionString, supervise: false, schedule: false });
  boss.on("error", console.error);
  await boss.start();
  await boss.createQueue(QUEUE);
  return async (event) => {
    if ((await boss.send(QUEUE, event)) === null) throw new Error("pg-boss took no job.");
  };
}
