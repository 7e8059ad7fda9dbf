/** Origins, and the Host headers that belong to them. */

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** An exact http(s) origin as browsers write it: lower case, no default port; null for anything else. */
export function originOf(text: unknown): string | null {
  if (typeof text !== "string" || !/^https?:\/\/[^\s/?#@\\*]+$/i.test(text) || !URL.canParse(text)) return null;
  return new URL(text).origin;
}

/** What a Host header may say for `origin`, in lower case: clients may write a default port or leave it out. */
export function hostsOf(origin: string): readonly string[] {
  const { protocol, hostname, port, host } = new URL(origin);
  return port === "" ? [host, `${hostname}:${DEFAULT_PORTS[protocol]}`] : [host];
}
