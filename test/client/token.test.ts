import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../src/testing/index.ts";
import { answerJson, startClient, startTokens, TOKEN_PATH } from "./support.ts";

const MINUTE = 60_000;
const WHOAMI = "/api/core/whoami";
const PARALLEL = 1_000;

const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

describe("the token request", () => {
  it("names the client in its form body by default (CLI-1)", async () => {
    const { client, emulator, requests } = await startClient();
    await client.whoami();
    const [asked] = requests;
    expect(asked?.headers.get("content-type")).toBe("application/x-www-form-urlencoded");
    expect(asked?.headers.get("authorization")).toBeNull();
    expect(Object.fromEntries(new URLSearchParams(asked?.body))).toEqual({
      grant_type: "client_credentials",
      client_id: emulator.clientId,
      client_secret: emulator.clientSecret,
    });
  });

  it("names the client by HTTP Basic with authMethod basic (CLI-1)", async () => {
    const { client, requests } = await startClient({ authMethod: "basic" });
    await client.whoami();
    expect(requests[0]?.headers.get("authorization")).toMatch(/^Basic [\w+/]+=*$/);
    expect(requests[0]?.body).toBe("grant_type=client_credentials");
  });

  it("form-encodes both parts for HTTP Basic, so that a colon in the id does not end it (TOK-18)", async () => {
    const credentials = { clientId: "client:main é", clientSecret: "a secret:with+all%of&it=ß" };
    const { client } = await startClient({ authMethod: "basic", emulator: credentials });
    expect((await client.whoami()).apiClientStatus).toBe("ACTIVE");
  });

  it("takes any credentials in the form body", async () => {
    const { client } = await startClient({ emulator: { clientId: "a&b=c", clientSecret: "+%ß &secret" } });
    expect((await client.whoami()).apiClientStatus).toBe("ACTIVE");
  });
});

describe("the token", () => {
  it("is asked for once for 1,000 parallel calls that have none (CLI-2)", async () => {
    const { client, sentTo } = await startClient();
    await Promise.all(many(PARALLEL, () => client.whoami()));
    expect(sentTo(TOKEN_PATH).length).toBe(1);
  });

  it("is asked for once for 1,000 parallel calls after it has expired (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, emulator, sentTo } = await startClient({ clock });
    await client.whoami();
    await clock.advance(60 * MINUTE);
    await emulator.clock.advance(60 * MINUTE);
    await Promise.all(many(PARALLEL, () => client.whoami()));
    expect(sentTo(TOKEN_PATH).length).toBe(2);
    expect(sentTo(WHOAMI).length).toBe(PARALLEL + 1);
  });

  it("is kept and used until shortly before its end (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, sentTo } = await startClient({ clock });
    await client.whoami();
    await clock.advance(55 * MINUTE - 1);
    await client.whoami();
    expect(sentTo(TOKEN_PATH).length).toBe(1);
  });

  it("is renewed from five minutes before its end, and no call waits for that (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, sentTo } = await startClient({ clock });
    await client.whoami();
    await clock.advance(55 * MINUTE);
    await client.whoami();
    await clock.advance(0);
    await client.whoami();
    const used = sentTo(WHOAMI).map(({ headers }) => headers.get("authorization"));
    expect(sentTo(TOKEN_PATH).length).toBe(2);
    expect(used[1]).toBe(used[0]);
    expect(used[2]).not.toBe(used[0]);
  });

  it("lives on when it cannot be renewed ahead, which is logged and tried again after ten seconds (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, emulator, lines, sentTo } = await startClient({ clock, maxRetries: 0 });
    await client.whoami();
    emulator.control.faults.add({ match: { route: `POST ${TOKEN_PATH}` }, action: { type: "status", status: 503 } });
    await clock.advance(56 * MINUTE);
    await Promise.all(many(10, () => client.whoami()));
    await clock.advance(0);
    expect(sentTo(TOKEN_PATH).length).toBe(2);
    expect(lines).toMatchObject([{ level: "warn", fields: { operation: "token" } }]);
    await clock.advance(9_999);
    await client.whoami();
    expect(sentTo(TOKEN_PATH).length).toBe(2);
    await clock.advance(1);
    await client.whoami();
    expect(sentTo(TOKEN_PATH).length).toBe(3);
  });

  it("counts as expired a few seconds early, for the way to the service takes time (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, sentTo } = await startClient({ clock });
    await client.whoami();
    await clock.advance(60 * MINUTE - 5_000);
    await client.whoami();
    const used = sentTo(WHOAMI).map(({ headers }) => headers.get("authorization"));
    expect(used[1]).not.toBe(used[0]);
  });

  it("ages from before it was asked for, not from when the answer came (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, tokenRequests } = await startTokens(
      async (response) => {
        await clock.advance(20_000);
        answerJson(response, 200, { access_token: "slow", token_type: "bearer", expires_in: 60 });
      },
      { clock },
    );
    await client.whoami();
    await clock.advance(36_999);
    await client.whoami();
    expect(tokenRequests()).toBe(2);
    await clock.advance(60_000);
    await client.whoami();
  });

  it("does not age by the wall clock, which may jump (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, sentTo } = await startClient({ clock });
    await client.whoami();
    clock.set(clock.now() + 24 * 60 * MINUTE);
    await client.whoami();
    expect(sentTo(TOKEN_PATH).length).toBe(1);
  });

  it.each([
    ["without expires_in", {}],
    ["with expires_in null", { expires_in: null }],
    ["with an expires_in that is no number", { expires_in: "soon" }],
  ])("lives an hour %s", async (_, fields) => {
    const clock = createFakeClock();
    const answer = { access_token: "t", token_type: "bearer", ...fields };
    const { client, tokenRequests } = await startTokens((response) => answerJson(response, 200, answer), { clock });
    await client.whoami();
    await clock.advance(54 * MINUTE);
    await client.whoami();
    expect(tokenRequests()).toBe(1);
    await clock.advance(6 * MINUTE);
    await client.whoami();
    expect(tokenRequests()).toBe(2);
  });

  it("serves the calls that wait for it even when it ends at once", async () => {
    const answer = { access_token: "t", token_type: "bearer", expires_in: 0 };
    const { client, tokenRequests } = await startTokens((response) => answerJson(response, 200, answer));
    await Promise.all(many(5, () => client.whoami()));
    expect(tokenRequests()).toBe(1);
  });

  it("is sent as it is, whatever it looks like, and never read (CLI-2)", async () => {
    const answer = { access_token: "~not.a.jwt~!", token_type: "bearer", expires_in: 3600 };
    const { client, requests } = await startTokens((response) => answerJson(response, 200, answer));
    await client.whoami();
    expect(requests.at(-1)?.headers.get("authorization")).toBe("Bearer ~not.a.jwt~!");
  });
});
