/** Where the queue is: what this example reads from its environment next to what all examples read. */

export interface QueueEnvironment {
  readonly redisUrl: string;
  readonly queueName: string;
}

/** Reads `REDIS_URL` (default redis://127.0.0.1:6379) and `QUEUE` (default sms). */
export function readQueueEnvironment(variables: NodeJS.ProcessEnv): QueueEnvironment {
  return { redisUrl: variables.REDIS_URL || "redis://127.0.0.1:6379", queueName: variables.QUEUE || "sms" };
}
