import { describe, expect, it } from "vitest";
import { createEgressGuard } from "../../../../src/messaging/emulator/delivery/egress.ts";

const ALL_PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

const guards = {
  "the defaults": createEgressGuard({ allowPrivateTargets: [], allowPublicTargets: false }),
  "10.1.0.0/16 and fd12::/16 open": createEgressGuard({
    allowPrivateTargets: ["10.1.0.0/16", "fd12::/16"],
    allowPublicTargets: false,
  }),
  "public targets open": createEgressGuard({ allowPrivateTargets: [], allowPublicTargets: true }),
  "everything open": createEgressGuard({ allowPrivateTargets: ALL_PRIVATE, allowPublicTargets: true }),
};

const words = (text: string): string[] => text.trim().split(/\s+/);

/** Hosts by what they are, in every spelling that a URL knows; and under which of the four guards they are reached. */
const HOSTS: readonly (readonly [what: string, reached: readonly boolean[], hosts: readonly string[]])[] = [
  [
    "loopback",
    [true, true, true, true],
    words(`127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7F.1 0177.0.0.1 017700000001 127.0.0.1. 127.255.255.254
      127%2e0%2e0%2e1 %31%32%37.0.0.1 １２７.0.0.1 127。0。0。1 [::1] [0:0:0:0:0:0:0:1] [0000::0001] [::ffff:127.0.0.1]
      [::ffff:7f00:1] [::FFFF:7F00:0001]`),
  ],
  [
    "a private address inside the opened range",
    [false, true, false, true],
    words(`10.1.2.3 167838211 0xa010203 012.1.2.3 10.66051 10.1.2.3. [::ffff:10.1.2.3] [::ffff:a01:203] [fd12::1]
      [fd12:3456:789a::1]`),
  ],
  [
    "a private address outside of it",
    [false, false, false, true],
    words(`10.0.0.1 10.2.0.0 167772161 172.16.0.1 172.31.255.255 192.168.1.1 3232235777 100.64.0.1
      [::ffff:192.168.1.1] [fd13::1] [fc00::1]`),
  ],
  [
    "a public address",
    [false, false, true, true],
    words(`8.8.8.8 134744072 0x08080808 010.010.010.010 8.526344 8.8.8.8. 172.32.0.1 172.15.255.255 [::ffff:8.8.8.8]
      [2606:4700:4700::1111] [64:ff9b::8.8.8.8] [2002:808:808::1] 100.128.0.1`),
  ],
  [
    "a metadata address",
    [false, false, false, false],
    words(`169.254.169.254 2852039166 0xa9fea9fe 0xA9.0xFE.0xA9.0xFE 0251.0376.0251.0376 169.254.43518 169.16689662
      169.254.169.254. 169%2e254.169.254 ①⑥⑨.254.169.254 169.254.170.2 [::ffff:169.254.169.254] [::ffff:a9fe:a9fe]
      [64:ff9b::169.254.169.254] [64:ff9b:1::a9fe:a9fe] [2002:a9fe:a9fe::1] [::ffff:0:a9fe:a9fe] [::a9fe:a9fe]
      [::169.254.169.254] 100.100.100.200 1684301000 0144.100.100.200 [::ffff:100.100.100.200] [64:ff9b::6464:64c8]
      [2002:6464:64c8::] 168.63.129.16 [::ffff:168.63.129.16] [64:ff9b::168.63.129.16] 192.0.0.192 [2002:a83f:8110::]
      [fd00:ec2::254] [fd00:0ec2:0:0:0:0:0:0254] [fd00:ec2::23] [fd20:ce::254]`),
  ],
  [
    "a link-local address",
    [false, false, false, false],
    words("169.254.0.1 169.254.255.255 [fe80::1] [febf:ffff::1] [::ffff:169.254.0.1] [fec0::1]"),
  ],
  [
    "no address of one machine",
    [false, false, false, false],
    words(`0.0.0.0 0 0x0 0.1.2.3 [::] [::ffff:0.0.0.0] [::ffff:0:0] 255.255.255.255 4294967295 224.0.0.1
      239.255.255.255 [ff02::1] [ff0e::1] [::ffff:224.0.0.1] 240.0.0.1`),
  ],
  [
    "an address for documents, tests or tunnels",
    [false, false, false, false],
    words(`192.0.2.1 198.51.100.7 203.0.113.9 198.18.0.1 [2001:db8::1] [100::1] [::ffff:192.0.2.1]
      [2001:0:4136:e378:8000:63bf:3fff:fdd2] [::808:808] [::7f00:1] [64:ff9b:1::808:808]`),
  ],
  [
    "a tunnel to loopback or to a private network",
    [false, false, false, false],
    words("[64:ff9b::127.0.0.1] [64:ff9b::10.1.2.3] [2002:7f00:1::1] [2002:a01:203::1] [::ffff:0:7f00:1]"),
  ],
];

describe("createEgressGuard()", () => {
  describe.each(Object.entries(guards).map(([name, guard], index) => ({ name, guard, index })))(
    "with $name",
    ({ guard, index }) => {
      const rows = HOSTS.map(([what, reached, hosts]) => ({ what, reached: reached[index], hosts }));
      it.each(rows)("reaches $what: $reached", ({ hosts, reached }) => {
        for (const host of hosts) {
          for (const url of [`http://${host}/hooks`, `https://${host}:8443/hooks`, `HTTP://${host}`]) {
            expect([url, guard.refusalOf(url) === null]).toEqual([url, reached]);
          }
        }
      });

      it("decides an address as it decides the URL that holds it", () => {
        for (const [, reached, hosts] of HOSTS) {
          for (const host of hosts) {
            const address = new URL(`http://${host}/`).hostname.replace(/^\[|\]$/g, "");
            expect([address, guard.isAddressAllowed(address)]).toEqual([address, reached[index]]);
          }
        }
      });

      it.each([
        ["a zone", "http://[fe80::1%25eth0]/", "is not a URL"],
        ["a zone on loopback", "http://[::1%25lo]/", "is not a URL"],
        ["a number too many", "http://127.0.0.256/", "is not a URL"],
        ["no host", "http://", "is not a URL"],
        ["no text", "", "is not a URL"],
        ["another scheme", "ftp://127.0.0.1/", "is not an http or https URL"],
        ["a file", "file:///etc/passwd", "is not an http or https URL"],
        ["a user", "http://user@127.0.0.1/", "holds credentials"],
        ["a password", "https://:secret@localhost/", "holds credentials"],
        ["an address in the place of a user", "http://127.0.0.1@receiver.test/", "holds credentials"],
      ])("refuses a URL with %s", (_, url, reason) => {
        expect(guard.refusalOf(url)).toBe(reason);
      });

      it.each(["localhost", "metadata.google.internal", "127.0.0.1.nip.io"])("leaves %s to its look-up", (name) => {
        expect(guard.refusalOf(`http://${name}/`)).toBeNull();
        expect(guard.isAddressAllowed(name)).toBe(false);
      });

      it("takes nothing for an address that is none", () => {
        for (const text of ["", " ", "127.0.0.1 ", "127.0.0.1:80", "[::1]", "127.1", "0x7f000001", "2130706433"]) {
          expect([text, guard.isAddressAllowed(text)]).toEqual([text, false]);
        }
      });

      it.each([
        ...words(
          "::127.0.0.1 ::10.0.0.1 ::10.1.2.3 ::8.8.8.8 ::169.254.169.254 0::127.0.0.1 ::127.0.0.1%lo fe80::1%eth0",
        )
          .concat(words("::ffff:169.254.169.254 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1"))
          .map((address) => [address, false] as const),
        ...words("::0.0.0.1 ::ffff:127.0.0.1 0:0:0:0:0:FFFF:127.0.0.1 ::1%lo").map(
          (address) => [address, true] as const,
        ),
      ])("takes %s, as look-ups and sockets write it, for the address that it is: %s", (address, allowed) => {
        expect(guard.isAddressAllowed(address)).toBe(allowed);
      });
    },
  );

  it.each([
    ["http://169.254.169.254/", "names a link-local or metadata address, which webhooks never reach"],
    ["http://10.0.0.1/", "names a private address: allowPrivateTargets opens its network"],
    ["http://[::ffff:192.168.0.1]/", "names a private address: allowPrivateTargets opens its network"],
    ["http://[fc00::1]/", "names a private address: allowPrivateTargets opens its network"],
    ["http://8.8.8.8/", "names a public address: allowPublicTargets opens them"],
    ["http://[2606:4700:4700::1111]/", "names a public address: allowPublicTargets opens them"],
    ["http://192.0.2.1/", "names an address of no receiver"],
    ["http://[64:ff9b::a9fe:a9fe]/", "names an address of no receiver"],
  ])("says why %s is refused, and what would open the way", (url, reason) => {
    expect(guards["the defaults"].refusalOf(url)).toBe(reason);
  });
});

describe("allowPrivateTargets", () => {
  const withRange = (range: unknown) =>
    createEgressGuard({ allowPrivateTargets: [range as string], allowPublicTargets: false });

  it.each([...ALL_PRIVATE, "10.0.0.0/32", "10.1.2.3/8", "172.20.0.0/16", "fd00::/8"])("takes %s", (range) => {
    expect(() => withRange(range)).not.toThrow();
  });

  it.each([
    ["an address", "10.0.0.1", 'write "10.0.0.1/32"'],
    ["an IPv6 address", "fd00::1", 'write "fd00::1/128"'],
    ["a name", "receiver.test/24", "CIDR"],
    ["no prefix", "10.0.0.0/", "CIDR"],
    ["a long prefix", "10.0.0.0/33", "CIDR"],
    ["a negative prefix", "10.0.0.0/-1", "CIDR"],
    ["a mask", "10.0.0.0/255.0.0.0", "CIDR"],
    ["a short form", "10/8", "CIDR"],
    ["two prefixes", "10.0.0.0/8/8", "CIDR"],
    ["spaces", " 10.0.0.0/8", "CIDR"],
    ["a public range", "8.8.8.0/24", "allowPublicTargets"],
    ["a range that is private only in part", "10.0.0.0/7", "allowPublicTargets"],
    ["everything", "0.0.0.0/0", "allowPublicTargets"],
    ["everything in IPv6", "::/0", "allowPublicTargets"],
    ["private addresses in mapped form", "::ffff:10.0.0.0/104", "allowPublicTargets"],
    ["link-local addresses", "169.254.0.0/16", "never"],
    ["link-local IPv6 addresses", "fe80::/10", "never"],
    ["a metadata address", "100.100.100.200/32", "never"],
    ["metadata addresses", "fd00:ec2::/32", "never"],
    ["loopback", "127.0.0.0/8", "always allowed"],
  ])("refuses %s, and says what to write", (_, range, fix) => {
    expect(() => withRange(range)).toThrow(expect.objectContaining({ name: "SetupError", code: "invalid_option" }));
    expect(() => withRange(range)).toThrow(fix);
    expect(() => withRange(range)).toThrow(`"${range}"`);
  });

  it.each([[[8]], [[null]], ["10.0.0.0/8"], [null]])("refuses %j, which is no list of texts", (value: unknown) => {
    const settings = { allowPrivateTargets: value as string[], allowPublicTargets: false };
    expect(() => createEgressGuard(settings)).toThrow(/"allowPrivateTargets" must be a list/);
  });
});
