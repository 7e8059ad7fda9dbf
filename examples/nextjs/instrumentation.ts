/** Runs once when the server starts: starts the worker, and ends it on SIGTERM. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME === "nodejs") await (await import("./lib/worker")).startWorker();
}
