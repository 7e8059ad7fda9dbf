import { describe, expect, it } from "vitest";
import { type Call, type Client, InvalidArgumentError } from "../../src/client/index.ts";
import { failureOf, startClient } from "./support.ts";

async function refused(make: (client: Client) => Call<unknown>, validateRequests = true) {
  const { client, requests } = await startClient({ validateRequests });
  const error = await failureOf(make(client), InvalidArgumentError);
  expect(requests).toEqual([]);
  return error;
}

describe("an argument that is not given", () => {
  it.each([true, false])("is told as missing, validateRequests: %s (SND-3, UPD-4, WHK-8)", async (validate) => {
    const nothing = undefined as never;
    const calls: [string, (client: Client) => Call<unknown>][] = [
      ["request", (client) => client.messages.send(nothing)],
      ["update", (client) => client.numbers.update("num_1", nothing)],
      ["update", (client) => client.webhooks.update("inbound", nothing)],
    ];
    for (const [name, make] of calls) {
      expect((await refused(make, validate)).issues).toEqual([`${name}: is missing; it must be an object`]);
    }
  });

  it("is told apart from one that JSON cannot hold", async () => {
    const { issues } = await refused((client) => client.messages.send((() => {}) as never));
    expect(issues).toEqual(["request: cannot be written as JSON"]);
  });
});
