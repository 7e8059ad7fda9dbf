/** What becomes of an answer that a client with `validateResponses: "throw"` refuses though the service did what was asked. */
import { describe, expect, it } from "vitest";
import { createClient, ResponseValidationError } from "../../../src/messaging/client/index.ts";
import { type RotateSecretOptions, rotateSecret } from "../../../src/messaging/rotation/index.ts";
import { expectAgreement, failureOf, type Setting, serviceSecret, startSetting } from "./support.ts";

const GENERATING = { emulator: { unspecified: { secretGeneration: "always" } } } as const;

describe('rotateSecret(), with a client that has validateResponses: "throw"', () => {
  it("keeps a secret that the service made, whatever else is wrong in the answer (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    const result = await rotateSecret(strictly(setting, (answer) => JSON.stringify({ ...answer, scope: null })));
    expect(result).toMatchObject({ generated: true });
    await expectAgreement(setting);
    expect(setting.lines.map(({ message }) => message)).toContain("The service's answer is not as specified.");
    expect(JSON.stringify(setting.lines)).not.toContain(serviceSecret(setting));
  });

  it.each([{ scope: null }, { generatedSecret: null }, { generatedSecret: 5 }])(
    "ends though the answer to our own secret is refused each time: %j (WHK-18)",
    async (wrong) => {
      const setting = await startSetting();
      const result = await rotateSecret(strictly(setting, (answer) => JSON.stringify({ ...answer, ...wrong })));
      expect(result).toMatchObject({ generated: false });
      await expectAgreement(setting);
    },
  );

  it("tells of an answer that shows nothing, keeps `next`, and goes on with it (WHK-20)", async () => {
    const setting = await startSetting();
    const failure = await failureOf(rotateSecret(strictly(setting, () => "<html>")));
    expect(failure).toBeInstanceOf(ResponseValidationError);
    expect((await setting.secrets.read("delivery"))?.next?.secret).toBe(serviceSecret(setting));
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true });
    await expectAgreement(setting);
  });
});

/** The options, with a strict client to whose update something else is answered. */
function strictly({ emulator, options }: Setting, body: (answer: object) => string): RotateSecretOptions {
  const client = createClient({
    baseUrl: emulator.url,
    clientId: emulator.clientId,
    clientSecret: emulator.clientSecret,
    validateResponses: "throw",
    backoff: { baseMs: 0 },
    async fetch(input, init) {
      const response = await emulator.handle(new Request(input, init));
      return init?.method === "PATCH" ? new Response(body((await response.json()) as object), response) : response;
    },
  });
  return { ...options, client };
}
