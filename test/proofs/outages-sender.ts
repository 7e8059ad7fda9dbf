/** The sending side of an application: a token, webhook secrets, messages to ordinary and to magic recipients. */
import type { Emulator } from "../../src/emulator/index.ts";

const TOKEN_LIFE_MS = 3_600_000;

/** One recipient of ten is special: twice, reversed, 90 minutes late, failing, answering. */
const SPECIAL = ["05", "06", "07", "01", "02", "08"].map((end) => `+150055500${end}`);

export interface Sender {
  /** Another signing secret for both kinds; the one before stays valid for a while. */
  rotate(secret: string): Promise<void>;
  /** One message; to a special recipient for every tenth number, and a customer's message with every other tenth. */
  send(number: number): Promise<void>;
}

/** Speaks to the API through `handle`. */
export function connect(emulator: Emulator): Sender {
  const call = async (method: string, path: string, body: object, headers: Record<string, string> = {}) => {
    const request = new Request(`${emulator.url}${path}`, {
      method,
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    const response = await emulator.handle(request);
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return response.json();
  };
  const { clientId: client_id, clientSecret: client_secret } = emulator;
  const credentials = { grant_type: "client_credentials", client_id, client_secret };
  let token = "";
  let expiresAt = 0;
  const bearer = async () => {
    if (emulator.clock.now() >= expiresAt) {
      ({ access_token: token } = (await call("POST", "/api/auth/token", credentials)) as { access_token: string });
      expiresAt = emulator.clock.now() + TOKEN_LIFE_MS;
    }
    return { authorization: `Bearer ${token}` };
  };
  return {
    async rotate(secret: string) {
      for (const kind of ["inbound", "delivery"]) {
        await call("PATCH", `/api/core/webhooks/${kind}`, { signingEnabled: true, secret }, await bearer());
      }
    },
    async send(number: number) {
      const special = SPECIAL[(number / 10) % SPECIAL.length];
      const to = number % 10 === 0 && special !== undefined ? special : "+14155550123";
      const headers = { "idempotency-key": `send ${number}`, ...(await bearer()) };
      const message = { sendFrom: emulator.fixtures.numbers.full, to: [to], messageType: "SMS", text: "hello" };
      await call("POST", "/api/core/messages/send", { ...message, externalReference: `order-${number}` }, headers);
      if (number % 10 === 5) {
        emulator.control.inbound({
          to: emulator.fixtures.numbers.full,
          from: "+14155550124",
          body: `answer ${number}`,
        });
      }
    },
  };
}
