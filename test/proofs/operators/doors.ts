/** Requests to the inspector that it must refuse. Each is a good one with one flaw: another site's page, another host name, a missing right. */
import { createReceiver } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { createLoopbackSession, LINK_MS } from "../../../src/tools/inspector/access.ts";
import {
  createInspector,
  type Grant,
  type InspectorRequest,
  type Mountable,
} from "../../../src/tools/inspector/index.ts";
import { createFakeClock, deliver, fixtures, TEST_SECRET } from "../../../src/tools/testing/index.ts";

const ORIGIN = "https://ops.example.com";
const OWN = { host: "ops.example.com", origin: ORIGIN, "sec-fetch-site": "same-origin" };
const POST = { ...OWN, "x-oncehook-inspector": "1", "content-type": "application/json" };

/** By a link on another site, which may lead to the page. */
const LINKED = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

interface Call {
  readonly method: string;
  readonly path: string;
  /** An undefined one is not sent. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The sender's. */
  readonly right: Grant;
}

/** Each with the least right that it needs. */
const GOOD: readonly Call[] = [
  { method: "GET", path: "", headers: OWN, right: "read" },
  { method: "GET", path: "/api/overview", headers: OWN, right: "read" },
  { method: "POST", path: "/api/events", headers: POST, right: "read" },
  { method: "POST", path: "/api/events/1/replay", headers: POST, right: "act" },
  { method: "POST", path: "/api/lanes/1/reveal", headers: POST, right: { access: "reveal", by: "somebody" } },
];

const BY_LINK: Call = { method: "GET", path: "", headers: { ...OWN, ...LINKED }, right: "read" };

const LESS: Readonly<Record<string, Grant>> = { read: false, act: "read", reveal: "act" };

/** What makes a good call a bad one. */
const FLAWS: Readonly<Record<string, (call: Call) => Partial<Call>>> = {
  "without a Host": headed({ host: undefined }),
  "for another Host": headed({ host: "attacker.example.net" }),
  "from another Origin": headed({ origin: "https://attacker.example.net" }),
  "from our Origin without TLS": headed({ origin: ORIGIN.replace("https", "http") }),
  "from the Origin null": headed({ origin: "null" }),
  "from another site": headed({ "sec-fetch-site": "cross-site" }),
  "from a neighbour's site": headed({ "sec-fetch-site": "same-site" }),
  "as a script of another site": headed({ "sec-fetch-site": "cross-site", "sec-fetch-dest": "script" }),
  "in a frame of another site": headed({
    ...{ "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
  }),
  "by another method": ({ method }) => ({ method: method === "GET" ? "POST" : "GET" }),
  "by an unknown method": () => ({ method: "PUT" }),
  "with less right": ({ right }) => ({ right: LESS[accessOf(right)] ?? false }),
  "without any right": () => ({ right: false }),
  "with an answer that is not a right": () => ({ right: "everything" as Grant }),
};
const FLAWS_OF_POSTS: typeof FLAWS = {
  "without the page's header": headed({ "x-oncehook-inspector": undefined }),
  "with another value of the page's header": headed({ "x-oncehook-inspector": "0" }),
  "as a form": headed({ "content-type": "application/x-www-form-urlencoded" }),
};

export interface Doors {
  readonly problems: readonly string[];
  readonly requests: number;
}

/** Every good call once, and once with each flaw; and the link of a local inspector. */
export async function knockAtDoors(): Promise<Doors> {
  const clock = createFakeClock();
  const store = memoryStore({ volatile: true });
  const receiver = createReceiver({ secrets: TEST_SECRET, store, clock, logger: silentLogger }).onAny(() => {});
  await deliver(receiver, fixtures.queued());
  const inbox = receiver.inbox;
  const authorize = ({ right }: Call) => right;
  const inspector = createInspector<Call>({ inbox, authorize, origins: [ORIGIN], clock, logger: silentLogger });
  const problems: string[] = [];
  let requests = 0;
  for (const call of [...GOOD, BY_LINK]) {
    const { status } = await inspector.handle(requestOf(call, inspector));
    if (status !== 200) problems.push(`the inspector refused ${nameOf(call)} with ${status}`);
  }
  for (const call of GOOD) {
    const flaws = { ...FLAWS, ...(call.method === "POST" && FLAWS_OF_POSTS) };
    for (const [flaw, apply] of Object.entries(flaws)) {
      requests += 1;
      const before = (await inbox.audit()).length;
      const answer = await inspector.handle(requestOf({ ...call, ...apply(call) }, inspector));
      const isRefused = [400, 401, 403, 405].includes(answer.status);
      const acted = (await inbox.audit()).length - before;
      if (!isRefused) problems.push(`the inspector took ${nameOf(call)} ${flaw}: ${answer.status}`);
      if (acted > 0) problems.push(`the inspector acted: ${nameOf(call)} ${flaw}`);
    }
  }
  inspector.close();
  problems.push(...(await linkProblems()));
  await receiver.stop();
  return { problems, requests };
}

/** It opens once, within its minute, in the own browser; and the cookie that it gives is the only way in. */
async function linkProblems(): Promise<readonly string[]> {
  const clock = createFakeClock();
  const session = createLoopbackSession({ port: 4000, access: "act", by: "somebody", clock });
  const asked: Mountable<never> = {
    path: session.path,
    logger: silentLogger,
    handle: async ({ native }) => ({ status: session.authorize(native) === false ? 401 : 200, headers: {}, body: "" }),
  };
  const mounted = session.mount(asked);
  const ask = (url: string, headers: Call["headers"] = {}) => {
    const all = { host: "127.0.0.1:4000", ...headers };
    return mounted.handle({
      ...requestOf({ method: "GET", path: "", headers: all, right: false }, asked),
      url,
    } as never);
  };
  const link = () => session.link().slice("http://127.0.0.1:4000".length);
  const statuses = async () => {
    const first = link();
    const opened = await ask(first);
    const again = await ask(first);
    const replaced = link();
    link();
    const old = await ask(replaced);
    const late = link();
    await clock.advance(LINK_MS + 1);
    const cookie = opened.headers["set-cookie"]?.split(";")[0] ?? "";
    return {
      "a link": [opened.status, 303],
      "a link that was opened": [again.status, 403],
      "a link that another one replaced": [old.status, 403],
      "a link after its minute": [(await ask(late)).status, 403],
      "a link for another Host": [(await ask(link(), { host: "attacker.example.net" })).status, 403],
      "the page with the cookie": [(await ask(session.path, { cookie })).status, 200],
      "the page without it": [(await ask(session.path)).status, 401],
      "the page with a guessed cookie": [(await ask(session.path, { cookie: `${cookie.slice(0, -1)}!` })).status, 401],
      "another path": [(await ask("/inspector", { cookie })).status, 404],
    };
  };
  return Object.entries(await statuses()).flatMap(([what, [status, wanted]]) =>
    status === wanted ? [] : [`${what} was answered with ${status} and not ${wanted}`],
  );
}

function requestOf<Native>(call: Call, { path }: Mountable<Native>): InspectorRequest<Native> {
  const { method, headers } = call;
  return {
    ...{ method, headers, url: `${path}${call.path}`, native: { ...call, headers } as never },
    readJson: async () => ({ ok: true, value: {} }),
    signal: new AbortController().signal,
  };
}

function headed(headers: Call["headers"]): (call: Call) => Partial<Call> {
  return (call) => ({ headers: { ...call.headers, ...headers } });
}

function accessOf(right: Grant): string {
  return typeof right === "object" ? right.access : String(right);
}

function nameOf({ method, path }: Call): string {
  return `${method} ${path === "" ? "of the page" : path}`;
}
