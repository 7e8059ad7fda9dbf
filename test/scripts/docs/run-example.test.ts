/** What an example of the documentation gets: its port, its files, and an emulator when it asks for one. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Example } from "../../../scripts/docs/blocks.ts";
import { runExample } from "../../../scripts/docs/run-example.ts";

const root = join(import.meta.dirname, "../../..");
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "oncehook-run-example-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function problemsOf(code: string, more: Partial<Example> = {}): Promise<string[]> {
  const file = join(folder, "example.mjs");
  await writeFile(file, code);
  return runExample({ name: "example", language: "js", place: "a.md:1", code, ...more }, file, root);
}

describe("runExample()", () => {
  it("says how an example ended that did not end well, with what it printed", async () => {
    expect(await problemsOf("console.log('so far'); process.exit(3);")).toEqual(["ended with 3: so far"]);
  });

  it("gives an example a port on which its server listens, whatever other servers it has", async () => {
    const code = `
      import assert from "node:assert/strict";
      import { createServer } from "node:http";
      for (const port of [Number(process.env.PORT), 3000]) {
        const server = createServer((request, response) => response.end()).listen(port);
        await new Promise((resolve) => server.once("listening", resolve));
        assert.equal(server.address().port === Number(process.env.PORT), port !== 3000);
        assert.equal(server.address().address, "127.0.0.1");
        server.close();
      }`;
    expect(await problemsOf(code)).toEqual([]);
  });

  it("wants of a server that it takes signed webhooks of both kinds, and no forged one", async () => {
    const server = (answers: string) => `
      import { createServer } from "node:http";
      createServer((request, response) => {
        let body = "";
        request.on("data", (chunk) => (body += chunk)).on("end", () => response.writeHead(${answers}).end());
      }).listen(Number(process.env.PORT));`;
    expect(await problemsOf(server('body.includes("message.inbound") ? 401 : 200'), { serves: "/hooks" })).toEqual([
      "a signed message.inbound to /hooks was answered with 401",
      "a forged webhook to /hooks was answered with 200",
    ]);
  });

  it("runs an emulator beside an example that asks for it, whose webhooks reach the example's port soon", async () => {
    const code = `
      import { createServer } from "node:http";
      const { SERVICE_BASE_URL: url, SERVICE_CLIENT_ID: client_id, SERVICE_CLIENT_SECRET: client_secret } = process.env;
      let webhooks = 0;
      const receive = (request, response) => {
        request.resume().on("end", () => response.end());
        if (request.url === "/webhooks" && ++webhooks === 3) process.exit(0);
      };
      createServer(receive).listen(Number(process.env.PORT));
      setTimeout(() => process.exit(2), 6_000); // on the real clock a message takes ten
      const post = async (path, body, headers) => {
        headers = { "content-type": "application/json", ...headers };
        const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
        if (!answer.ok) process.exit(1);
        return answer.json();
      };
      const { access_token } = await post("/api/auth/token", { grant_type: "client_credentials", client_id, client_secret });
      const message = { sendFrom: "num_000001", to: ["+14155550123"], messageType: "SMS", externalReference: "order-1" };
      await post("/api/core/messages/send", message, { authorization: "Bearer " + access_token, "idempotency-key": "1" });`;
    expect(await problemsOf(code, { needsEmulator: true })).toEqual([]);
  });

  it("runs none beside the others", async () => {
    expect(await problemsOf("process.exit('SERVICE_BASE_URL' in process.env ? 1 : 0)")).toEqual([]);
  });
});
