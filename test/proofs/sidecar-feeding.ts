/** Feeds the Python application through `oncehook listen --forward-to`, while it is down, or another server in its place, for a part of the deliveries. */
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { eventIdentity, type KnownEvent } from "../../src/index.ts";
import { sleep, systemClock } from "../../src/internal/clock.ts";
import { messageOf } from "../../src/tools/forward/publisher.ts";
import { lifecycle, seededRandom, shuffled } from "../../src/tools/testing/index.ts";
import { endServer, listenOnLoopback } from "../support/loopback.ts";
import { type Kept, PythonApplication } from "../tools/cli/python-application.ts";
import { type Faults, faultsOf, heldOf, nameOf } from "../tools/forward/held.ts";

const SECRET = "a-webhook-signing-secret-of-32-b";
const FORWARD_SECRET = "a-forwarding-secret-of-32-bytes-";
const COMMAND = fileURLToPath(new URL("../../dist/cli.js", import.meta.url)).replace("/.build/", "/");
const SENDERS = 16;
const LOOK_EVERY_MS = 25;

export interface Plan {
  readonly messages: number;
  /** Of these, how many have events that arrive while the application is down. */
  readonly disturbed: number;
  /** Whether it is killed in the midst of its work. If so, the worker pauses itself, and tries again after five seconds only. */
  readonly killedAtWork: boolean;
  /** Longest wait for the last event, milliseconds. */
  readonly limitMs: number;
}

export interface Fed {
  readonly events: number;
  readonly deliveries: number;
  /** Deliveries that got no 2xx. */
  readonly refused: number;
  /** Events that reached the application with a second attempt or a later one. */
  readonly triedAgain: number;
  readonly faults: Faults;
  /** Kept with other bytes, or under another identity, than were sent. */
  readonly altered: number;
  /** Requests that were answered with a redirect, and those that went where it leads. */
  readonly redirected: number;
  readonly followed: number;
  /** What the application answered to a request that somebody else signed, and to one that it had got already. */
  readonly forged: number;
  readonly repeated: number;
  /** Exit codes of the command and the application. */
  readonly codes: readonly (number | null)[];
}

/** Three parts of the deliveries: before the application is killed, while it is down, and after it was started again. */
export async function feedSidecar({ messages, disturbed, killedAtWork, limitMs }: Plan): Promise<Fed> {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-sidecar-"));
  const application = new PythonApplication(folder, FORWARD_SECRET);
  const events = messagesOf(messages);
  const [before = [], during = [], after = []] = partsOf(events, disturbed);
  const service = new Service();
  const detour = new Detour();
  // What went elsewhere never comes.
  const arrived = () => application.count() + detour.followed;
  let repeated = 0;
  try {
    await application.start();
    const [[one]] = events as [[KnownEvent]];
    const forged = await postAs(SECRET, one, application.url);
    const sidecar = await startSidecar(folder, application.url);
    try {
      await service.deliver(before, sidecar.url);
      const limit = systemClock.monotonic() + limitMs;
      if (!killedAtWork) await reaching(arrived, inPlace(before), limit);
      await application.end("SIGKILL");
      const half = Math.ceil(during.length / 2);
      await service.deliver(during.slice(0, half), sidecar.url);
      await detour.open(application.url);
      await service.deliver(during.slice(half), sidecar.url);
      await reaching(() => detour.redirected, 1, limit);
      await detour.leave();
      await application.start();
      await service.deliver(after, sidecar.url);
      await reaching(arrived, events.flat().length, limit);
      repeated = await postAs(FORWARD_SECRET, one, application.url);
    } finally {
      service.close();
      await detour.close();
      await sidecar.end();
    }
    const codes = [await sidecar.end(), await application.end("SIGTERM")];
    const { redirected, followed } = detour;
    const found = findings(events.flat(), application.kept());
    return { ...found, ...service.counts, redirected, followed, forged, repeated, codes };
  } finally {
    await application.end("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Empty when every event arrived in its order, though there was an outage. */
export function problemsOf(fed: Fed): string[] {
  const { refused, triedAgain, faults, altered, redirected, followed, forged, repeated, codes } = fed;
  const problems: string[] = [];
  for (const [what, count] of Object.entries({ refused, altered, ...faults }))
    if (count > 0) problems.push(`${count} ${what}`);
  if (triedAgain === 0) problems.push("nothing was tried again: there was no outage");
  if (redirected === 0) problems.push("nothing was answered with a redirect");
  if (followed > 0) problems.push(`${followed} requests followed a redirect to somebody else`);
  if (forged !== 401) problems.push(`a forged event was answered with ${forged}`);
  if (repeated !== 204) problems.push(`a repeat was answered with ${repeated}`);
  if (codes.some((code) => code !== 0)) problems.push(`ended with ${codes.join(" and ")}`);
  return problems;
}

function messagesOf(count: number): KnownEvent[][] {
  return Array.from({ length: count }, (_, index) =>
    lifecycle({ messageId: `msg_${index}`, occurredAt: systemClock.now() }),
  );
}

/** Posts an event as the sidecar would, with some secret. */
async function postAs(secret: string, event: KnownEvent, url: string): Promise<number> {
  const { signal } = new AbortController();
  const circumstances = { signal, traceparent: null, attempt: 1, replay: false, late: false, missing: null };
  const { id, key, headers, body } = messageOf(event, Buffer.from(JSON.stringify(event)), circumstances);
  const timestamp = `${systemClock.now()}`;
  const signature = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  const signed = { "oncehook-timestamp": timestamp, "oncehook-signature": signature };
  const named = { ...headers, "oncehook-id": id, "oncehook-key": key };
  return (await fetch(url, { method: "POST", body: new Uint8Array(body), headers: { ...named, ...signed } })).status;
}

/** Resolves when `count` has come to `wanted`, or at the limit. */
async function reaching(count: () => number, wanted: number, limit: number): Promise<void> {
  while (count() < wanted && systemClock.monotonic() < limit) await sleep(systemClock, LOOK_EVERY_MS);
}

/** How many of these events have all of their message's before them. */
function inPlace(events: readonly KnownEvent[]): number {
  const names = new Set(events.map((event) => nameOf(heldOf("", JSON.stringify(event)))));
  return [...names].filter((name) => {
    const [messageId = "", sequence] = name.split(" ");
    const before = Array.from({ length: Number(sequence) }, (_, index) => nameOf({ messageId, sequence: index + 1 }));
    return before.every((one) => names.has(one));
  }).length;
}

/** Shuffled, every fifth event twice. What arrives in the outage belongs to `disturbed` messages. */
function partsOf(messages: readonly KnownEvent[][], disturbed: number): KnownEvent[][] {
  const random = seededRandom(messages.length);
  const parts: [KnownEvent[], KnownEvent[], KnownEvent[]] = [[], [], []];
  messages.forEach((events, index) => {
    const open = index < disturbed ? parts : [parts[0], parts[2]];
    for (const event of events)
      for (let copies = random() < 0.2 ? 2 : 1; copies > 0; copies--)
        open[Math.floor(random() * open.length)]?.push(event);
  });
  return parts.map((part) => shuffled(part, random));
}

function findings(sent: readonly KnownEvent[], kept: readonly Kept[]) {
  const bodies = new Map(sent.map((event) => [idOf(event), JSON.stringify(event)]));
  return {
    events: sent.length,
    triedAgain: kept.filter(({ attempt }) => attempt > 1).length,
    faults: faultsOf(
      kept.map(({ id, body }) => heldOf(id, body.toString())),
      sent,
    ),
    altered: kept.filter(({ id, body }) => bodies.get(id) !== body.toString()).length,
  };
}

function idOf(event: KnownEvent): string {
  return eventIdentity(event, Buffer.from(JSON.stringify(event)));
}

/** The service: signs and delivers, some at once. */
class Service {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: SENDERS });
  readonly counts = { deliveries: 0, refused: 0 };

  async deliver(events: readonly KnownEvent[], url: string): Promise<void> {
    const left = [...events];
    const inTurn = async () => {
      for (let event = left.pop(); event !== undefined; event = left.pop()) {
        this.counts.deliveries += 1;
        if ((await this.#post(url, JSON.stringify(event))) !== 200) this.counts.refused += 1;
      }
    };
    await Promise.all(Array.from({ length: SENDERS }, inTurn));
  }

  close(): void {
    this.#agent.destroy();
  }

  #post(url: string, body: string): Promise<number | undefined> {
    const timestamp = `${systemClock.now()}`;
    const signature = createHmac("sha256", SECRET).update(`${timestamp}.${body}`).digest("hex");
    const headers = { "x-service-timestamp": timestamp, "x-service-signature": signature };
    return new Promise((resolve, reject) => {
      const posting = request(url, { method: "POST", agent: this.#agent, headers }, (response) => {
        response.resume().once("end", () => resolve(response.statusCode));
      });
      posting.once("error", (error) => {
        // A kept connection may be closed just when it is used again: whoever keeps some sends once more.
        if (posting.reusedSocket) resolve(this.#post(url, body));
        else reject(error);
      });
      posting.end(body);
    });
  }
}

interface Sidecar {
  readonly url: string;
  /** Ends it with SIGTERM, once, and resolves with its exit code. */
  end(): Promise<number | null>;
}

async function startSidecar(folder: string, target: string): Promise<Sidecar> {
  const files = { "webhook.secret": SECRET, "forward.secret": FORWARD_SECRET };
  for (const [name, secret] of Object.entries(files)) writeFileSync(join(folder, name), secret, { mode: 0o600 });
  const flags = ["--port=0", "--store=inbox.db", "--secret-file=webhook.secret", "--quiet", "--json"];
  const forwarding = [`--forward-to=${target}`, "--forward-secret-file=forward.secret"];
  // Its log of failed attempts is what the outage makes of it.
  const child = spawn(process.execPath, [COMMAND, "listen", ...flags, ...forwarding], {
    cwd: folder,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const exited = once(child, "exit");
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    exited.then(([code]) => Promise.reject(new Error(`oncehook listen ended with ${code}.`))),
  ]);
  return {
    url: JSON.parse(line).listening,
    async end() {
      child.kill("SIGTERM");
      return (await exited)[0];
    },
  };
}

/** A server in the application's place that sends everybody on to another one, as a proxy does that has moved or wants a login. */
class Detour {
  /** Requests that were answered with a redirect. */
  redirected = 0;
  /** Requests that came where the redirects lead, each for an event that somebody else has now. */
  followed = 0;
  readonly #elsewhere = createServer((_request, response) => {
    this.followed += 1;
    response.writeHead(204).end();
  });
  readonly #place = createServer((request, response) => {
    const { port } = this.#elsewhere.address() as AddressInfo;
    response.once("finish", () => {
      this.redirected += 1;
    });
    // An answer to half a request might be cut off with it.
    request.resume().once("end", () => {
      response.writeHead(307, { location: `http://127.0.0.1:${port}/events` }).end();
    });
  });

  /** Listens where `url` leads, whose server is gone. */
  async open(url: string): Promise<void> {
    const { hostname, port } = new URL(url);
    await listenOnLoopback(this.#elsewhere);
    this.#place.listen(Number(port), hostname);
    await once(this.#place, "listening");
  }

  /** Leaves the place. Where the redirects lead somebody listens on, until `close`. */
  leave(): Promise<void> {
    return endServer(this.#place);
  }

  async close(): Promise<void> {
    await Promise.all([endServer(this.#place), endServer(this.#elsewhere)]);
  }
}
