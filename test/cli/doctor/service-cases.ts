/** Cases of `oncehook doctor` in which the service, or what answers at the public address, is not as it should be. */
import { readFileSync } from "node:fs";
import { onTestFinished } from "vitest";
import type { DoctorFlags } from "../../../src/cli/doctor/examine.ts";
import { createClient } from "../../../src/client/index.ts";
import { createEmulator, type Emulator, type EmulatorOptions } from "../../../src/emulator/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { newFile, newServer } from "../place.ts";
import type { Case } from "./cases.ts";
import { SECRET } from "./scene.ts";

export const TARGET = "https://hooks.example.com/webhooks";

/** The service, told of a good target; `change` spoils something. */
export async function service(
  change: (emulator: Emulator) => void,
  flags: DoctorFlags = {},
  unspecified: EmulatorOptions["unspecified"] = {},
): Promise<Case> {
  const emulator = await createEmulator({
    ...{ logger: silentLogger, inboundUrl: TARGET, deliveryUrl: TARGET, allowPublicTargets: true },
    unspecified: { "webhooks.exposeEndpointUrl": true, ...unspecified },
  });
  onTestFinished(() => emulator.close());
  change(emulator);
  const { url: baseUrl, clientId, clientSecret } = emulator;
  return { flags: { baseUrl, clientId, clientSecretFile: newFile(clientSecret), ...flags } };
}

/** One kind's default webhook, changed as a user changes it. */
export async function webhook(update: object): Promise<Case> {
  const prepared = await service(() => {});
  const { baseUrl = "", clientId = "" } = prepared.flags ?? {};
  const clientSecret = readFileSync(prepared.flags?.clientSecretFile ?? "", "utf8");
  const client = createClient({ baseUrl, clientId, clientSecret, logger: silentLogger });
  await client.webhooks.update("inbound", { signingEnabled: true, secret: SECRET, ...update });
  return prepared;
}

/** Only the numbers of which one can send stay as they should be. */
export const mended = (emulator: Emulator) => {
  const good = { status: "ACTIVE", smsEnabled: true, campaignRegId: "camp_1" } as const;
  for (const { numberId } of emulator.control.numbers()) emulator.control.updateNumber(numberId, good);
};

/** All of them with the same fault. */
export const everyNumber = (fields: Parameters<Emulator["control"]["updateNumber"]>[1]) => (emulator: Emulator) => {
  mended(emulator);
  for (const { numberId } of emulator.control.numbers()) emulator.control.updateNumber(numberId, fields);
};

/** A server that answers everything so. */
export const answering = async (status: number, headers = {}): Promise<Case> => {
  const url = await newServer((_request, response) => void response.writeHead(status, headers).end("{}"));
  return { flags: { url }, around: {} };
};

/** As a receiver refuses, wherever it is asked. */
export async function refusing(): Promise<Response> {
  return new Response('{"error":"unauthorized"}', { status: 401 });
}

/** What a service says on one route, changed on its way: what the emulator never says. */
export function altering<Body extends object>(route: string, change: (body: Body) => object): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    return String(input).endsWith(route) ? Response.json(change((await response.json()) as Body)) : response;
  };
}
