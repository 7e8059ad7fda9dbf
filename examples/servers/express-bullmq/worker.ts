/** `npm run example:express-bullmq-worker`: takes the events from BullMQ, and is not misled by their order there. */
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { parseEvent } from "oncehook";
import type { ForwardedJob } from "oncehook/bullmq";
import { endWithOneLine } from "../../shared/environment.ts";
import { readQueueEnvironment } from "./environment.ts";

async function main(): Promise<void> {
  const { redisUrl, queueName } = readQueueEnvironment(process.env);
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null });

  const worker = new Worker<ForwardedJob>(
    queueName,
    async (job) => {
      const { key, sequence, body } = job.data;
      const parsed = parseEvent(Buffer.from(body));
      if (!parsed.ok) throw new Error("This version of oncehook does not know this event.");
      // With a concurrency above one, sent may be worked on before queued: only what is newer than all before it counts. It
      // compares and keeps in one command, and a job that is worked on twice changes nothing.
      const newer = sequence === 0 || (await redis.zadd(`${queueName}:state`, "GT", "CH", sequence, key)) === 1;
      // Ids and types only: numbers and texts of people do not belong in a log.
      console.log(JSON.stringify({ worked: job.id, sequence, eventType: parsed.event.eventType, newer }));
    },
    { connection: { url: redisUrl, maxRetriesPerRequest: null }, concurrency: 8 },
  );
  worker.on("error", ({ name }) => console.error(JSON.stringify({ redis: name })));
  await worker.waitUntilReady();
  console.log(JSON.stringify({ listening: queueName }));

  const stop = async () => {
    await worker.close(); // Lets running jobs end.
    redis.disconnect();
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, stop);
}

main().catch(endWithOneLine);
