/** Four OAuth client libraries, written by others, obtain a token over HTTP; none knows of the emulator (TOK-2, TOK-3, TOK-18). */
import { inspect } from "node:util";
import { OAuth2Client, OAuth2HttpError } from "@badgateway/oauth2-client";
import ClientOAuth2 from "client-oauth2";
import * as oauth from "oauth4webapi";
import { ClientCredentials } from "simple-oauth2";
import { describe, expect, it } from "vitest";
import type { Emulator, EmulatorOptions } from "../../../../src/messaging/emulator/index.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { listen } from "../raw-socket.ts";

/** Ids and secrets whose characters mean something in a Basic header, a form or an encoding. */
const PAIRS = [
  { clientId: "client_main", clientSecret: "0123456789abcdef" },
  { clientId: "cli_a-b.c", clientSecret: "se:cr:et" },
  { clientId: "cli~(a)!*'", clientSecret: "1+1=2&3" },
  { clientId: "50%25", clientSecret: "100%" },
  { clientId: "a b", clientSecret: " s p a c e " },
] as const;
const FOREIGN = { clientId: "клиент", clientSecret: "ключ 🔑 ß+%:" } as const;
/** A colon in an id cannot be sent as it is: Basic ends the id there. */
const COLON = { clientId: "team:app", clientSecret: "a:b" } as const;

type Pair = Readonly<Record<"clientId" | "clientSecret", string>>;
type Obtain = (emulator: Emulator, pair: Pair) => Promise<string>;

const urlOf = ({ url }: Emulator) => `${url}/api/auth/token`;

function oauth4webapi(authentication: (secret: string) => oauth.ClientAuth): Obtain {
  return async (emulator, { clientId, clientSecret }) => {
    const server = { issuer: emulator.url, token_endpoint: urlOf(emulator) };
    const client = { client_id: clientId };
    const options = { [oauth.allowInsecureRequests]: true };
    const auth = authentication(clientSecret);
    const response = await oauth.clientCredentialsGrantRequest(server, client, auth, {}, options);
    const { access_token, token_type, expires_in } = await oauth.processClientCredentialsResponse(
      server,
      client,
      response,
    );
    expect([token_type, expires_in]).toEqual(["bearer", 3600]);
    return access_token;
  };
}

function simpleOauth2(options: ConstructorParameters<typeof ClientCredentials>[0]["options"]): Obtain {
  return async (emulator, { clientId, clientSecret }) => {
    const { origin, pathname } = new URL(urlOf(emulator));
    const client = { id: clientId, secret: clientSecret };
    const auth = { tokenHost: origin, tokenPath: pathname };
    const { token } = await new ClientCredentials({ client, auth, ...(options && { options }) }).getToken({});
    return String(token.access_token);
  };
}

function badgateway(
  authenticationMethod: "client_secret_basic" | "client_secret_basic_interop" | "client_secret_post",
): Obtain {
  return async (emulator, { clientId, clientSecret }) => {
    const tokenEndpoint = urlOf(emulator);
    const client = new OAuth2Client({ clientId, clientSecret, tokenEndpoint, authenticationMethod });
    return (await client.clientCredentials()).accessToken;
  };
}

const clientOauth2: Obtain = async (emulator, { clientId, clientSecret }) => {
  const client = new ClientOAuth2({ clientId, clientSecret, accessTokenUri: urlOf(emulator) });
  const { accessToken, tokenType } = await client.credentials.getToken();
  expect(tokenType).toBe("bearer");
  return accessToken;
};

interface Way {
  readonly library: string;
  readonly by: string;
  readonly obtain: Obtain;
  readonly pairs: readonly Pair[];
}

const ASCII = [...PAIRS, COLON];
const ALL = [...ASCII, FOREIGN];
const WAYS: readonly Way[] = [
  { library: "oauth4webapi", by: "Basic, encoded", obtain: oauth4webapi(oauth.ClientSecretBasic), pairs: ALL },
  { library: "oauth4webapi", by: "a form", obtain: oauth4webapi(oauth.ClientSecretPost), pairs: ALL },
  {
    library: "simple-oauth2",
    by: "Basic, encoded",
    obtain: simpleOauth2({ authorizationMethod: "header", credentialsEncodingMode: "strict" }),
    // It refuses ids and secrets beyond ASCII itself.
    pairs: ASCII,
  },
  {
    library: "simple-oauth2",
    by: "Basic, as it is",
    obtain: simpleOauth2({ authorizationMethod: "header", credentialsEncodingMode: "loose" }),
    pairs: PAIRS,
  },
  { library: "simple-oauth2", by: "a form", obtain: simpleOauth2({ authorizationMethod: "body" }), pairs: ASCII },
  {
    library: "simple-oauth2",
    by: "JSON",
    obtain: simpleOauth2({ authorizationMethod: "body", bodyFormat: "json" }),
    pairs: ASCII,
  },
  { library: "@badgateway/oauth2-client", by: "Basic, encoded", obtain: badgateway("client_secret_basic"), pairs: ALL },
  {
    library: "@badgateway/oauth2-client",
    by: "Basic with encoded colons alone",
    obtain: badgateway("client_secret_basic_interop"),
    // It takes Latin-1 at most, and encodes nothing but colons.
    pairs: ASCII,
  },
  { library: "@badgateway/oauth2-client", by: "a form", obtain: badgateway("client_secret_post"), pairs: ALL },
  { library: "client-oauth2", by: "Basic, as it is", obtain: clientOauth2, pairs: [...PAIRS, FOREIGN] },
];

const CASES = WAYS.flatMap(({ pairs, ...way }) => pairs.map((pair) => ({ ...way, ...pair })));
const OPTIONS: EmulatorOptions = { basePath: "/sms" };

describe("an OAuth client library", () => {
  it.each(CASES)("$library obtains a token by $by for $clientId and $clientSecret", async ({ obtain, ...pair }) => {
    const { clientId, clientSecret } = pair;
    const emulator = await listen({ ...OPTIONS, clientId, clientSecret });
    const token = await obtain(emulator, { clientId, clientSecret });
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${emulator.url}/api/core/whoami`, { headers });
    expect(await response.json()).toMatchObject({ apiClientId: "ac_main" });
    expect(emulator.control.requests().map(({ status }) => status)).toEqual([200, 200]);
  });

  it.each(WAYS)("$library is refused by $by with a wrong secret (TOK-8, TOK-12, TOK-21)", async ({ obtain }) => {
    const emulator = await listen(OPTIONS);
    const error = await failureOf(obtain(emulator, { clientId: emulator.clientId, clientSecret: "wrong" }));
    expect(codeIn(error)).toContain("invalid_client");
    expect(emulator.control.requests().map(({ status }) => status)).toEqual([401]);
  });
});

function codeIn(error: unknown): string | null {
  if (error instanceof oauth.ResponseBodyError) return error.error;
  if (error instanceof OAuth2HttpError) return error.oauth2Code;
  return inspect(error, { depth: 4 }); // The two others keep the answer's body.
}
