/** The events that AWS makes of an HTTP request, as its documentation shows them. */

export type Trigger = "HTTP API" | "REST API" | "load balancer";
export const TRIGGERS: readonly Trigger[] = ["HTTP API", "REST API", "load balancer"];

export interface Sent {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes as base64, for the way between processes. */
  readonly body: string;
}

/** The event that `trigger` makes of `request`; a body that is text comes as text, as from each of them. */
export function eventOf(trigger: Trigger, { method, headers, body }: Sent): object {
  const bytes = Buffer.from(body, "base64");
  const text = bytes.toString();
  const isText = Buffer.from(text).equals(bytes);
  const common = {
    headers: {
      ...headers,
      host: "hooks.example.com",
      "content-length": `${bytes.length}`,
      "x-forwarded-proto": "https",
    },
    body: isText ? text : body,
    isBase64Encoded: !isText,
  };
  return { ...common, ...BY_TRIGGER[trigger](method, common.headers) };
}

const PATH = "/webhooks";
const multi = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));

const BY_TRIGGER: Readonly<Record<Trigger, (method: string, headers: Record<string, string>) => object>> = {
  "HTTP API": (method) => ({
    version: "2.0",
    routeKey: "$default",
    rawPath: PATH,
    rawQueryString: "",
    requestContext: {
      accountId: "123456789012",
      apiId: "api-id",
      domainName: "hooks.example.com",
      http: { method, path: PATH, protocol: "HTTP/1.1", sourceIp: "192.0.2.1", userAgent: "service" },
      requestId: "id",
      routeKey: "$default",
      stage: "$default",
      timeEpoch: 1_760_000_000_000,
    },
  }),
  "REST API": (method, headers) => ({
    resource: "/{proxy+}",
    path: PATH,
    httpMethod: method,
    multiValueHeaders: multi(headers),
    queryStringParameters: null,
    multiValueQueryStringParameters: null,
    pathParameters: { proxy: "webhooks" },
    stageVariables: null,
    requestContext: {
      accountId: "123456789012",
      httpMethod: method,
      identity: { sourceIp: "192.0.2.1" },
      path: PATH,
      protocol: "HTTP/1.1",
      requestId: "id",
      resourcePath: "/{proxy+}",
      stage: "prod",
    },
  }),
  "load balancer": (method) => ({
    requestContext: {
      elb: { targetGroupArn: "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/a/1" },
    },
    httpMethod: method,
    path: PATH,
    queryStringParameters: {},
  }),
};
