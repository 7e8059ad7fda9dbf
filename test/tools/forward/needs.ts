/** What a test needs of an engine: a printed reason to skip where none answers, proxies before it, and an end of all of it. */
import { onTestFinished, type TestContext } from "vitest";
import { answers, type Service } from "./services.ts";
import { TcpProxy } from "./tcp-proxy.ts";

/** For `beforeEach`: skips the test, with a reason that the run prints and counts, where the service does not answer. */
export function needs(service: Service): (context: TestContext) => Promise<void> {
  const answering = answers(service);
  return async (context) => {
    if (!(await answering)) context.skip(`no ${service.name} at ${service.host}:${service.port}`);
  };
}

/** Runs `end` with the test, however it ended. */
export function atEnd(end: () => unknown): void {
  onTestFinished(async () => void (await end()));
}

/** On a free port; it ends with the test. */
export async function startProxy(service: Service): Promise<TcpProxy> {
  const proxy = new TcpProxy(service);
  await proxy.up();
  onTestFinished(() => proxy.down());
  return proxy;
}

/** On a port that nothing listens on until `up()`. */
export async function startProxyDown(service: Service): Promise<TcpProxy> {
  const proxy = await startProxy(service);
  await proxy.down();
  return proxy;
}
